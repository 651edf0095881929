// Parts of Gemma 3n and Gemma 4, whose last layers read keys of layers before, and whose layers
// have embeddings of their own.
#pragma once

#include <cstdint>
#include <vector>

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

// The spec without its parts that see and hear, whose tensors are left out.
DecoderSpec BesideSightAndHearing(const HfConfig& config, DecoderSpec text);

}  // namespace godwit
