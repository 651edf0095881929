// Which tensors of a checkpoint a model is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/spec.h"
#include "weights/packed_rows.h"
#include "weights/weight_source.h"

namespace godwit {

// A linear layer: tensors whose rows follow one another.
struct LinearTensors {
  std::vector<const TensorInfo*> parts;
  std::vector<const TensorInfo*> biases;  // one for each part, or none
  // Where the checkpoint is quantized, the same for all parts. One of int8 then has scales for its
  // weight as the format has them, and with a static input the scale of that, [1]; if the input is
  // not symmetric either, a zero point, [1].
  std::optional<LayerQuantization> quantization;
  // One for each part, whose `weight` that is, or none.
  std::vector<std::shared_ptr<const PackedTensors>> packed;
  std::vector<const TensorInfo*> scales;
  std::vector<const TensorInfo*> row_orders;  // bitsandbytes' weight_format, where there is one
  std::vector<const TensorInfo*> input_scales;
  std::vector<const TensorInfo*> input_zero_points;
  // The rows of the single part are grouped by KV head (QkvLayout::kGrouped).
  bool grouped = false;
  // Those of queries and keys have their rotary pairs side by side.
  bool interleaved = false;
  // The rows of the single part are of gate and up by turns.
  bool alternating = false;
  // Of every so many rows of the single part, those from `pairs_first` on have rotary pairs side by
  // side; 0: none have.
  int64_t pairs_period = 0;
  int64_t pairs_first = 0;
  // Parts are [inputs, outputs], else [outputs, inputs].
  bool transposed = false;
  // Of an expert whose single part lies in a tensor of all: the modules that the matrices in it are
  // where each is a tensor of its own, gate before up.
  std::vector<std::string> apart;

  int64_t OutputsOf(const TensorInfo& part) const { return part.shape[transposed ? 1 : 0]; }
  int64_t inputs() const { return parts.front()->shape[transposed ? 0 : 1]; }
};

// "model.layers.0.mlp.up_proj" of the tensor "model.layers.0.mlp.up_proj.weight".
std::string ModuleName(const TensorInfo& weight);

// That of its first part: what the packed Weight is called.
std::string ModuleName(const LinearTensors& linear);

struct NormTensors {
  int64_t size = 0;  // 0: there is no such norm
  const TensorInfo* weight = nullptr;
  const TensorInfo* bias = nullptr;
  std::vector<const TensorInfo*> heads;  // in the place of weight: DecoderSpec::qk_norm_by_head
};

struct MlpTensors {
  LinearTensors up, down;
};

// DecoderSpec::latent.
struct LatentTensors {
  LinearTensors query_down, query, kv_down;
  NormTensors query_norm, kv_norm;
  std::vector<LinearTensors> keys, values;  // of each head: LatentWeights
};

struct LayerTensors {
  NormTensors attention_norm, mlp_norm, q_norm, k_norm, attention_out_norm, mlp_out_norm;
  LinearTensors qkv, attention_out;  // qkv: empty with `latent`
  LatentTensors latent;
  const TensorInfo* sinks = nullptr;  // AttentionSink::kLearned
  MlpTensors mlp;                     // with experts: DecoderSpec::shared_mlp, or empty
  LinearTensors router;
  const TensorInfo* choice_bias = nullptr;  // MlpSpec::choice_bias
  std::vector<MlpTensors> experts;          // none in a dense layer
};

struct ModelTensors {
  const TensorInfo* embedding = nullptr;  // null if tied, or of blocks
  LinearTensors embedding_blocks;         // the same of blocks, which are packed as a layer's
  const TensorInfo* positions = nullptr;
  NormTensors embedding_norm;
  LinearTensors project_in, project_out;
  std::vector<LayerTensors> layers;
  NormTensors final_norm;
  LinearTensors head;
  std::vector<std::shared_ptr<const TensorInfo>> slices;  // of tensors of several matrices
  int64_t bytes = 0;                                      // of all of them
  bool int8 = false;                                      // some linear layers are int8
  bool packed = false;                                    // some are packed
};

// All linear layers that there are, in the order in which they are packed.
std::vector<const LinearTensors*> LinearsOf(const ModelTensors& tensors);

// What a checkpoint of this spec must hold, whatever else is in it.
struct WantedTensor {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<WantedTensor> WantedTensors(const DecoderSpec& spec);

// How many these are, without scales of quantized layers, and their elements: counted on one layer
// of each kind and one expert, so that the size of a model that does not exist takes no memory.
struct TensorTotals {
  int64_t tensors = 0;
  int64_t elements = 0;
};
TensorTotals CountTensors(const DecoderSpec& spec);

// Finds everything that the spec asks for. Throws Error(kFormat) that lists the missing,
// unexpected, misshapen and mistyped tensors, each with what was expected and found, and the layers
// that are quantized otherwise than those with which they are fused; or that tells the numbers
// where far more is missing than a list could name.
ModelTensors ResolveTensors(const DecoderSpec& spec, const WeightSource& source);

}  // namespace godwit
