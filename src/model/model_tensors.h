// The tensors of a checkpoint of which a model is made.
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

struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};

// A linear layer: tensors whose rows follow one another.
struct LinearTensors {
  std::vector<const TensorInfo*> parts;
  std::vector<const TensorInfo*> biases;  // one for each part, or none
  // The quantization of the checkpoint, the same for all parts. An int8 layer then has scales for
  // its weight as the format has them. With a static input it has that input's scale, [1], and a
  // zero point, [1], if the input is not symmetric.
  std::optional<LayerQuantization> quantization;
  // Packed tensors, one for each part, whose `weight` is the part, or none.
  std::vector<std::shared_ptr<const PackedTensors>> packed;
  std::vector<const TensorInfo*> scales;
  std::vector<const TensorInfo*> row_orders;  // bitsandbytes' weight_format, where there is one
  std::vector<const TensorInfo*> input_scales;
  std::vector<const TensorInfo*> input_zero_points;
  // Whether the rows of the single part are grouped by KV head (QkvLayout::kGrouped).
  bool grouped = false;
  // Whether the first part has rows of attention's gates behind those of each query head. They come
  // last in packed order.
  bool gated = false;
  // Sizes of blocks that follow one another in each group of the single part's rows. In packed
  // order a block of all groups comes before the next block. Empty: the order is the same.
  std::vector<int64_t> blocks;
  // Whether the rows of queries and keys have their rotary pairs side by side.
  bool interleaved = false;
  // Whether the rows of the single part are of gate and up by turns.
  bool alternating = false;
  // The period of rows of the single part in which those from `pairs_first` on have rotary pairs
  // side by side; 0: none have.
  int64_t pairs_period = 0;
  int64_t pairs_first = 0;
  int64_t pairs_rows = 0;  // the number of these rows; 0: up to the period's end
  // Whether parts are [inputs, outputs], else [outputs, inputs].
  bool transposed = false;
  // The modules of an expert's matrices, gate before up, in checkpoints where each is a tensor of
  // its own. For an expert whose single part lies in a tensor of all.
  std::vector<std::string> apart;

  // The outputs and inputs that a rank takes (model/weight_share.h), and whether it takes the
  // biases. Outputs are counted in packed order, inputs as the checkpoint has them. None: all.
  std::vector<IndexRange> taken_outputs;
  std::optional<IndexRange> taken_inputs;
  bool takes_biases = true;

  int64_t OutputsOf(const TensorInfo& part) const { return part.shape[transposed ? 1 : 0]; }
  // The outputs and inputs of all parts.
  int64_t stored_outputs() const;
  int64_t stored_inputs() const { return parts.front()->shape[transposed ? 0 : 1]; }
  // The outputs and inputs that are taken.
  int64_t outputs() const;
  int64_t inputs() const { return taken_inputs ? taken_inputs->count() : stored_inputs(); }
  int64_t first_input() const { return taken_inputs ? taken_inputs->begin : 0; }
  // The place of a taken output among all, in packed order.
  int64_t PlaceOf(int64_t output) const;
};

// The module of a tensor: "model.layers.0.mlp.up_proj" of "model.layers.0.mlp.up_proj.weight".
std::string ModuleName(const TensorInfo& weight);

// The module of the first part, which is the name of the packed Weight.
std::string ModuleName(const LinearTensors& linear);

struct NormTensors {
  int64_t size = 0;  // 0: there is no such norm
  const TensorInfo* weight = nullptr;
  const TensorInfo* bias = nullptr;
  std::vector<const TensorInfo*> heads;  // in the place of weight: DecoderSpec::qk_norm_by_head
  std::optional<IndexRange> taken;       // the numbers that a rank takes; none: all
};

struct MlpTensors {
  LinearTensors up, down;
};

// DecoderSpec::latent.
struct LatentTensors {
  LinearTensors query_down, query, kv_down;
  NormTensors query_norm, kv_norm;
  // DecoderSpec::key_index, unless the layer shares the choice of another
  LinearTensors index_query, index_key, index_weights;
  NormTensors index_norm;
  std::vector<LinearTensors> keys, values;  // for each head: LatentWeights
};

// Mixer::kGatedDeltaNet, beside its projections and convolution.
struct DeltaTensors {
  LinearTensors gates;  // [2 * value_heads, hidden]: of the update, then of the decay
  // GatedDeltaNetSpec::narrow, without which these are parts of gates and of the projection in
  LinearTensors decay_down, decay_up, z_down, z_up;
  const TensorInfo* rates = nullptr;       // [value_heads]: logarithms, unless negated
  bool rates_negated = false;              // GatedDeltaNetSpec
  const TensorInfo* biases = nullptr;      // [decays of the shape]
  const TensorInfo* norm = nullptr;        // [value_dim]
  std::optional<float> norm_epsilon;       // GatedDeltaNetSpec
  std::optional<IndexRange> taken_heads;   // of values, which a rank takes; none: all
  std::optional<IndexRange> taken_biases;  // likewise
};

// Mixer::kMamba2, beside its convolution.
struct Mamba2Tensors {
  LinearTensors in, out;
  const TensorInfo* rates = nullptr;      // [value_heads]: logarithms, unless negated
  bool rates_negated = false;             // Mamba2Spec
  const TensorInfo* biases = nullptr;     // [value_heads]
  const TensorInfo* skips = nullptr;      // [value_heads]
  const TensorInfo* norm = nullptr;       // [values], or null: Mamba2Norm::kNone
  std::optional<IndexRange> taken_heads;  // of values, which a rank takes; none: all
};

struct LayerTensors {
  NormTensors attention_norm, mlp_norm, q_norm, k_norm, attention_out_norm, mlp_out_norm;
  // qkv: empty with `latent`; of another mixer: its projections in and out
  LinearTensors qkv, attention_out;
  LatentTensors latent;
  const TensorInfo* sinks = nullptr;      // AttentionSink::kLearned
  std::optional<IndexRange> taken_heads;  // of queries, which a rank takes; none: all
  DeltaTensors delta;
  Mamba2Tensors mamba;
  // Mixer::kShortConvolution, kGatedDeltaNet, kMamba2: [width, 1, taps], all of one or those of q,
  // k and v, and its bias or null
  std::vector<const TensorInfo*> taps;
  const TensorInfo* convolution_bias = nullptr;
  std::vector<IndexRange> taken_channels;  // of the convolution, which a rank takes; none: all
  std::vector<const TensorInfo*> xielu;    // MlpSpec::xielu: alpha_p, alpha_n, beta, eps
  MlpTensors mlp;                          // with experts: LayerKind::shared_mlp, or empty
  // DecoderSpec::branch_norms
  NormTensors experts_norm, experts_out_norm, shared_out_norm;
  const TensorInfo* router_gains = nullptr;     // [hidden]
  const TensorInfo* expert_scales = nullptr;    // [experts]
  LinearTensors embedding_gate, embedding_out;  // DecoderSpec::layer_embedding
  NormTensors embedding_out_norm;
  const TensorInfo* scale = nullptr;  // DecoderSpec::layer_scales: [1]
  // DecoderSpec::streams
  LinearTensors stream_router, stream_predict, stream_correct, laurel_down, laurel_up;
  NormTensors stream_norm, laurel_norm;
  const TensorInfo* stream_factors = nullptr;  // [hidden]
  LinearTensors router;
  LinearTensors experts_in, experts_out;    // MlpSpec::latent
  LinearTensors shared_share;               // LayerKind::shared_gated: [1, hidden]
  const TensorInfo* choice_bias = nullptr;  // MlpSpec::choice_bias
  std::vector<MlpTensors> experts;          // none in a dense layer; those that a rank takes
  int64_t first_expert = 0;                 // the number of the first of these
};

// DecoderSpec::prediction.
struct PredictionTensors {
  NormTensors embedding_norm, output_norm, norm;
  LinearTensors join;
  LayerTensors layer;
};

struct ModelTensors {
  const TensorInfo* embedding = nullptr;  // null if tied, or of blocks
  LinearTensors embedding_blocks;  // the embedding if of blocks, which are packed as a layer's
  const TensorInfo* positions = nullptr;
  NormTensors embedding_norm;
  // DecoderSpec::layer_embedding. The table stays in its file.
  const TensorInfo* layer_table = nullptr;
  LinearTensors layer_model;
  NormTensors layer_model_norm;
  std::vector<LinearTensors> streams_in, streams_out;  // DecoderSpec::streams, but the first
  LinearTensors project_in, project_out;
  std::vector<LayerTensors> layers;
  NormTensors final_norm;
  LinearTensors head;
  std::optional<PredictionTensors> prediction;  // with DecoderSpec::predicts
  std::optional<IndexRange> taken_tokens;  // rows of the embedding that a rank takes; none: all
  std::vector<std::shared_ptr<const TensorInfo>> slices;  // of tensors of several matrices
  int64_t bytes = 0;                                      // of all tensors
  bool int8 = false;                                      // some linear layers are int8
  bool packed = false;                                    // some linear layers are packed
};

// All linear layers that there are, in the order in which they are packed.
std::vector<const LinearTensors*> LinearsOf(const ModelTensors& tensors);

// A tensor that a checkpoint of a spec must hold.
struct WantedTensor {
  std::string name;
  std::vector<int64_t> shape;
};
std::vector<WantedTensor> WantedTensors(const DecoderSpec& spec);

// The number of these tensors, without scales of quantized layers, and of their elements. They are
// counted on one layer of each kind and one expert: the size of a model that does not exist takes
// no memory.
struct TensorTotals {
  int64_t tensors = 0;
  int64_t elements = 0;
};
TensorTotals CountTensors(const DecoderSpec& spec);

// Whether the checkpoint has a layer that predicts tokens (DecoderSpec::prediction).
bool HasPrediction(const DecoderSpec& spec, const WeightSource& source);

// Finds everything that the spec asks for. Throws Error(kFormat) that lists the missing,
// unexpected, misshapen and mistyped tensors, each with what was expected and found. The error also
// lists layers whose quantization differs from those with which they are fused. It tells the
// numbers where far more is missing than a list could name.
ModelTensors ResolveTensors(const DecoderSpec& spec, const WeightSource& source);

}  // namespace godwit
