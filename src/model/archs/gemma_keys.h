// Parts of Gemma 3n and Gemma 4, whose last layers read keys of layers before, and whose layers
// have embeddings of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "model/hf_fields.h"
#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// The layer whose keys each layer [layers] reads; -1: its own. The last num_kv_shared_layers read
// those of a layer before them all, the last one with the same type of attention. The tensors of
// keys that a reader would have had become harmless, because published files keep them.
std::vector<int64_t> ReadKeySources(const HfConfig& config, const std::vector<bool>& windowed,
                                    int64_t default_shared, DecoderSpec& spec);

// Reads DecoderSpec::layer_embedding. whole: the config that has the type of the weights.
void ReadLayerEmbedding(const HfConfig& config, const HfConfig& whole, DecoderSpec& spec);

// Norms behind both blocks, plain gains, norms of queries, keys and values in the place of a scale
// of scores, and a cap on logits. whole: as ReadLayerEmbedding has it.
void ReadNormsAndScales(const HfConfig& config, const HfConfig& whole, double default_cap,
                        DecoderSpec& spec);

// The text model of a config whose other parts see and hear; their tensors are left out. describe:
// the family's, of its text_config and of the config that has the type of the weights.
DecoderSpec BesideSightAndHearing(const HfConfig& config, const CommonKeys& keys,
                                  DecoderSpec (*describe)(const HfConfig& text,
                                                          const HfConfig& whole,
                                                          const CommonKeys& keys));

}  // namespace godwit
