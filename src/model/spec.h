// DecoderSpec: all differences between decoder-only families, as plain data.
//
// An architecture file (archs/*.cc) declares a spec from a config.json; the loader reads tensors by
// it; the decoder follows it. Nothing is inferred from which tensors happen to exist, and nothing
// after the loader knows a family by name.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attention/core/geometry.h"
#include "model/eagle3_spec.h"
#include "model/mixers/mixer.h"
#include "ops/activation.h"
#include "ops/moe.h"
#include "ops/norm.h"
#include "ops/select_keys.h"
#include "weights/quantization_config.h"

namespace godwit {

enum class Topology {
  kSequential,          // y = x + attention(norm1(x)); y + mlp(norm2(y))
  kParallel,            // x + attention(norm1(x)) + mlp(norm2(x))
  kParallelSharedNorm,  // x + attention(norm1(x)) + mlp(norm1(x))
  kPostNorm,            // y = norm1(x + attention(x)); norm2(y + mlp(y))
};

enum class QkvLayout {
  kSeparate,  // three tensors
  kGrouped,   // one tensor: for every KV head its query heads, then its key, then its value
  kFused,     // one tensor: all q, then all k, then all v
};

// The numbers of q and k that are normalised together, before position encoding.
enum class QkNorm {
  kNone,
  kHeads,     // those of a head; all heads have one gain
  kEachHead,  // those of a head, each head with a gain of its own
  kAllHeads,  // those of all heads
  // Numbers of a head, without a gain, in the layers in which positions rotate it. In Llama 4 the
  // norm comes after the rotation, which keeps lengths.
  kRotatedHeads,
  // Numbers of a head, whose gains follow the rotation (Hunyuan). Queries get the product of both
  // gains, so that keys stay free of them.
  kHeadsThenGains,
};

// The extra term of attention's softmax, beside the keys.
enum class AttentionSink {
  kNone,
  kSoftmax1,  // one more term, exp(0), in the denominator: the "zero sink"
  kLearned,   // one more term, exp(a learned number for each head and layer)
};

// Multi-head latent attention (DeepSeek-V2, section 2.1). The keys and values of all heads are made
// of two vectors of a token: the latent vector and a common rotated key. The matrices that would
// make keys and values are applied to the queries and the results instead. Only these two vectors
// are cached then, as one KV head. Its keys are the rotated key, then the latent vector. Its values
// are the latent vector, as it lies in the keys.
struct LatentAttention {
  int64_t query_rank = 0;  // width of a vector of which all queries are made; 0: the hidden state
  int64_t kv_rank = 0;     // width of the latent vector
  int64_t plain_dim = 0;   // dimensions of a head's queries and keys without positions
  int64_t rotary_dim = 0;  // dimensions with positions
  int64_t value_dim = 0;
  float norm_epsilon = 1e-6f;  // of the norms of the query vector and the latent vector
  // Whether each head has tensors of its own. The one of its keys is stored as it is applied to
  // queries, [kv_rank, plain_dim].
  bool heads_apart = false;

  int64_t query_dim() const { return plain_dim + rotary_dim; }
  int64_t cached_dim() const { return rotary_dim + kv_rank; }
  // The value of AttentionShape::values_from, a multiple of 4: rotated numbers may stand before the
  // latent vector's.
  int64_t values_from() const { return rotary_dim / 4 * 4; }
};

// The index by which layers of latent attention choose the keys that a query sees
// (ops/select_keys.h). Its queries are made of the query vector, its keys and its weights of the
// hidden state. Keys are normalised, then they and the queries rotate as those of attention.
struct KeyIndexSpec {
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t best = 0;
  bool interleaved_rotary = false;  // as DecoderSpec has it, for the index alone
  float norm_epsilon = 1e-6f;       // of the norm of keys

  ops::KeyIndexShape shape() const;
};

struct MlpSpec {
  bool gated = true;  // down(activation(gate(x)) * up(x)), else down(activation(up(x)))
  ops::Activation activation = ops::Activation::kSilu;
  int64_t intermediate = 0;
  bool bias = false;
  bool fused = false;                         // gate and up are one tensor: gate, then up
  bool alternating = false;                   // fused: a row of gate, a row of up, and so on
  std::optional<ops::ClampedSwiglu> clamped;  // in the place of the activation
  // Whether a unit without a gate has ops::Xielu in the place of the activation, with numbers of
  // its own in every layer.
  bool xielu = false;
  float gate_scale = 1;  // a factor on the gate, before the activation
  float out_scale = 1;   // a factor on the result
  // Where given, a unit's gate passes what lies so many standard deviations above the mean of all
  // gates (ops::CutBelow), before its activation.
  std::optional<float> cut_deviations;

  // The number of experts: MLPs of which a token goes through some (ops/moe.h). 0: one
  // MLP.
  int64_t experts = 0;
  int64_t experts_per_token = 0;
  // The width of what experts read and write, which a projection makes of the hidden state and
  // another brings back (LatentMoE of Nemotron 3). 0: they read the hidden state.
  int64_t latent = 0;
  bool stacked = false;     // a matrix of all experts is one tensor, [experts, ...]
  bool transposed = false;  // the matrices of experts are stored as [inputs, outputs]
  bool router_bias = false;
  // Whether an expert's share is its part of the softmax over the chosen experts, else over all.
  bool shares_among_chosen = true;
  ops::ExpertChoice choice;  // the other options of the router
  bool choice_bias = false;  // ops::MoeWeights

  bool operator==(const MlpSpec&) const = default;
};

// The facts in which layers of one model differ.
struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  DecayingSumSpec sum;               // Mixer::kDecayingSum
  ShortConvolutionSpec convolution;  // Mixer::kShortConvolution
  GatedDeltaNetSpec delta;           // Mixer::kGatedDeltaNet
  Mamba2Spec mamba;                  // Mixer::kMamba2
  // Whether attention reads the same input as Mixer::kMamba2. Both results are added.
  bool attention_beside = false;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  // The layer whose keys and values this one reads, of the same heads, rotation and window; -1: it
  // has its own.
  int64_t keys_of = -1;
  bool keys_are_values = false;  // values are made of what keys are made of; no projection of v
  RotarySpec rotary;             // see AttentionGeometry::rotaries
  int64_t window = 0;            // see AttentionGeometry::windows
  // Whether the layer sees the keys that the last layer with an index chose, and has none of its
  // own. With DecoderSpec::key_index.
  bool shares_choice = false;
  bool input_norms = true;    // else attention and the MLP read the residual stream as it is
  bool output_norms = false;  // attention's and the MLP's results normalised, then added
  MlpSpec mlp;                // width 0: none
  MlpSpec shared_mlp;         // beside experts: of every token; width 0: none
  bool shared_gated = false;  // the shared MLP's result times the sigmoid of a number of the token

  bool operator==(const LayerKind&) const = default;
};

// A further embedding of each token, with a part for every layer ("per-layer embeddings"). Behind
// its MLP a layer adds what it makes of its part to the residual stream. A part is the mean of two
// vectors, times the root of 2: a row of a table, and a projection of the token's embedding.
struct LayerEmbedding {
  int64_t layers = 0;      // parts of a token, those of a model that is cut short among them
  int64_t width = 0;       // of a layer's part
  int64_t vocab_size = 0;  // rows of the table; tokens beyond them have the first row
  float scale = 1;         // a factor on the table's numbers
};

// Several residual streams (AltUp, arXiv 2301.13310). A layer predicts all of them from one
// another, computes with one, and corrects all by what that one became.
struct StreamsSpec {
  int64_t count = 1;
  int64_t active = 0;   // the stream with which layers compute
  bool scaled = false;  // the active stream has factors where layer embeddings read it
  int64_t narrow = 0;   // the rank of the product beside attention (LAuReL, arXiv 2411.07501)
};

// Names of modules in the checkpoint; ".weight" and ".bias" are appended. "{}" stands for the
// layer; a second "{}" for the expert or the head. The spec decides which of them are read.
struct ModuleNames {
  // The beginning of all names but the head's. Checkpoints of the model without a head leave it
  // out.
  std::string prefix;
  // Other beginnings of names, {here, there}, in checkpoints whose embedding has one of them. The
  // first that fits counts.
  std::vector<std::pair<std::string, std::string>> renamed;
  // Other endings of norms' names, {here, there}, each in the checkpoints that have it alone.
  std::vector<std::pair<std::string, std::string>> renamed_norms;

  std::string embedding;
  std::string embedding_norm;
  std::string positions;
  std::string project_in, project_out;
  std::string final_norm;
  std::string head;  // not read if tied

  std::string attention_norm;
  std::string q, k, v;  // QkvLayout::kSeparate
  std::string qkv;      // QkvLayout::kGrouped, kFused
  // Modules of DecoderSpec::latent, in which q makes the queries.
  std::string query_down, query_down_norm, kv_down, kv_down_norm, kv_up;
  // LatentAttention::heads_apart, in the place of kv_up: "{}" stands for the layer, then the head.
  std::string head_keys, head_values;
  std::string index_query, index_key, index_key_norm, index_weights;  // DecoderSpec::key_index
  std::string q_norm, k_norm;
  std::string sinks;  // AttentionSink::kLearned: the tensor, without an ending
  std::string attention_out;
  std::string attention_out_norm;
  std::string mixer_in, mixer_out;  // of layers without attention
  std::string convolution;          // Mixer::kShortConvolution, kGatedDeltaNet, kMamba2
  // Modules of Mixer::kGatedDeltaNet. Gates: of all, or of the update and of the decay.
  std::string delta_z, delta_gates, delta_update, delta_decay;
  // GatedDeltaNetSpec::inputs_apart, in the place of mixer_in and convolution: of q, k and v.
  std::array<std::string, 3> delta_inputs, delta_convolutions;
  std::string delta_decay_down, delta_z_down;    // GatedDeltaNetSpec::narrow, before the other two
  std::string mixer_norm;                        // Mixer::kGatedDeltaNet, kMamba2
  std::string decay_rates, decay_biases, skips;  // likewise: tensors, without an ending

  std::string mlp_norm;  // not read for Topology::kParallelSharedNorm
  std::string router;
  std::string choice_bias;              // the tensor, without an ending
  std::string experts_in, experts_out;  // MlpSpec::latent
  std::string gate, up, down;           // MlpSpec::fused: up is both
  std::string xielu;                    // MlpSpec::xielu: the module of its numbers
  // The MLP of a layer without experts, in a model whose usual layer has them.
  std::string dense_gate, dense_up, dense_down;
  std::string shared_gate, shared_up, shared_down;  // LayerKind::shared_mlp
  std::string shared_share;                         // LayerKind::shared_gated
  // Modules for MlpSpec::stacked in checkpoints where the matrices of each expert are tensors of
  // their own.
  std::string per_expert_gate, per_expert_up, per_expert_down;
  std::string expert_weight = ".weight";  // ending of the names of experts' tensors
  std::string expert_bias = ".bias";
  std::string mlp_out_norm;
  // DecoderSpec::branch_norms. The router's gains and the experts' factors are tensors, without an
  // ending.
  std::string router_gains, expert_scales, experts_norm, experts_out_norm, shared_out_norm;
  // DecoderSpec::layer_embedding: of the model, then of each layer.
  std::string layer_table, layer_model, layer_model_norm;
  std::string layer_gate, layer_out, layer_out_norm;
  std::string layer_scale;  // DecoderSpec::layer_scales: the tensor, without an ending
  // DecoderSpec::streams. Modules of the model, in which "{}" stands for the stream.
  std::string streams_in, streams_out;
  // Modules of each layer. The factors are a tensor, without an ending.
  std::string stream_router, stream_norm, stream_predict, stream_correct, stream_factors;
  std::string laurel_down, laurel_up, laurel_norm;

  // Endings of tensor names that checkpoints have and the engine does not need.
  std::vector<std::string> harmless;
  // Beginnings of the names of other models' tensors, such as those of a vision model.
  std::vector<std::string> others;
};

// The layer with which a checkpoint predicts the token behind the next one, for draft tokens. It is
// one step of multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2). At position p it
// reads the embedding of the token, and the model's output at p - 1 behind the final norm. Both are
// joined: join([norm(embedding); norm(output)]). A block with attention follows, then a norm. Its
// result through the model's output head predicts the token at p + 1.
struct Prediction {
  LayerKind kind;     // with attention
  std::string layer;  // stands in names for "model.layers.{}"
  std::string join;   // [hidden, 2 * hidden]
  std::string embedding_norm, output_norm, norm;
  // A key of config.json, and its value, by which the layer computes otherwise; empty: none.
  std::string unsupported;
};

// A spec is also the usual kind of its layers. A model whose layers are alike has no other.
struct DecoderSpec : LayerKind {
  std::string family;                        // model_type, for messages
  std::string described_by = "config.json";  // the file that describes the model, for messages
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t layers = 0;
  int64_t max_context = 0;  // tokens, rope scaling included

  ops::NormKind norm = ops::NormKind::kRms;
  float norm_epsilon = 0;
  bool norm_gain = true;            // else the norms have no weights and no biases
  bool norm_gain_less_one = false;  // the checkpoint's weights are the gains - 1
  bool norm_bias = false;

  Topology topology = Topology::kSequential;
  float residual_scale = 1;  // a factor on attention's and the MLP's results
  // Whether the MLP of all tokens stands beside experts as a branch of its own (Gemma 4). It reads
  // mlp_norm's result. The experts read another norm's, and the router a third's. Each of the two
  // results is normalised before they add up. Each expert has a factor on its shares.
  bool branch_norms = false;
  bool layer_scales = false;  // the residual stream times a number behind each layer
  std::optional<LayerEmbedding> layer_embedding;
  std::optional<StreamsSpec> streams;  // with layer_embedding; none: one stream
  bool final_norm = true;

  // The width of the token embeddings, hidden_size unless given. Given, embeddings are projected in
  // and, before the output head, out.
  std::optional<int64_t> embedding_size;
  float embedding_scale = 1;  // a factor on token embeddings
  bool embedding_norm = false;
  // The first row of a table of learned positions. Row first + p is added to the embedding of the
  // token at position p. The table has first + max_context rows.
  std::optional<int64_t> first_learned_position;

  int64_t heads = 0;
  // Latent attention. With it, kv_heads is 1 and head_dim is cached_dim().
  std::optional<LatentAttention> latent;
  // With latent attention, whose query_rank is not 0.
  std::optional<KeyIndexSpec> key_index;
  QkvLayout qkv_layout = QkvLayout::kSeparate;
  bool qkv_bias = false;
  bool attention_out_bias = false;
  float attention_scale = 1;  // a factor on attention's results
  // Whether attention's results are multiplied by sigmoids, one for each number. Rows of q that
  // make them come behind those of each head.
  bool gated_attention = false;
  std::optional<float> clip_qkv;  // q, k and v are brought into [-clip_qkv, clip_qkv]
  QkNorm qk_norm = QkNorm::kNone;
  bool value_norm = false;           // each head's values normalised, without a gain
  bool qk_norm_by_head = false;      // QkNorm::kEachHead: each gain is a tensor, named by its head
  std::optional<float> score_scale;  // 1 / sqrt(head_dim) unless given
  std::optional<float> score_cap;    // see ops::AttentionShape

  AttentionSink attention_sink = AttentionSink::kNone;
  // The token that the model was trained to find at the start of every text, if there is one.
  std::optional<int32_t> sink_token;

  // Whether the checkpoint's rotary pairs are (2i, 2i + 1). The loader brings the rows of q and k
  // into the engine's order, (i, i + rotary_dim / 2), which changes no score.
  bool interleaved_rotary = false;
  ops::Alibi alibi;
  bool chunked = false;  // see AttentionGeometry

  // Set by ChangeLayers.
  std::vector<LayerKind> other_kinds;
  std::vector<int8_t> layer_kind;  // [layers], 0: the usual, 1: other_kinds[0], ...; empty: all 0

  bool tied_head = false;  // the output head is the embedding
  bool head_bias = false;  // of an output head of its own
  float logit_scale = 1;
  std::optional<float> logit_cap;  // a logit l becomes cap * tanh(l / cap)

  // Whether the matrices of layers are stored as [inputs, outputs]. The loader transposes them.
  bool transposed = false;

  QuantizationConfig quantization;  // which linear layers the checkpoint holds quantized

  ModuleNames names;

  // The layer that predicts; none: no checkpoint of this config has one. It is loaded on request
  // alone, and then has the number `layers`. Layers that are counted do not include it.
  std::optional<Prediction> prediction;
  bool predicts = false;  // whether it is loaded
  // The EAGLE-3 head that was loaded beside the model, in the place of such a layer.
  std::optional<Eagle3Spec> eagle3;

  // Warnings for the user: keys of the config.json that this spec leaves out.
  std::vector<std::string> warnings;

  bool operator==(const DecoderSpec&) const = delete;  // would compare usual kinds alone
};

// The kind of a layer, with DecoderSpec::predicts also of the layer that predicts.
const LayerKind& KindOf(const DecoderSpec& spec, int64_t layer);

// Asks for the layer that predicts (DecoderSpec::predicts). Throws Error(kUnsupported) if there is
// none, or one that computes otherwise.
void RequestPrediction(DecoderSpec& spec);

// Calls change(layer, kind) for every layer with the kind that it has, and lets it have the changed
// kind. Changes add up, and equal kinds become one. A family does this last: later changes of the
// usual kind do not reach layers of others.
void ChangeLayers(DecoderSpec& spec,
                  const std::function<void(int64_t layer, LayerKind& kind)>& change);
// The same for the flagged layers [layers] alone.
void ChangeLayers(DecoderSpec& spec, const std::vector<bool>& layers,
                  const std::function<void(LayerKind& kind)>& change);

// Whether the layer has attention.
inline bool HasAttention(const LayerKind& kind) {
  return kind.mixer == Mixer::kAttention || kind.attention_beside;
}
// Whether the layer has keys and values of its own.
inline bool HasKeys(const LayerKind& kind) { return HasAttention(kind) && kind.keys_of < 0; }
// Whether the layer remembers a state.
inline bool IsRecurrent(const LayerKind& kind) {
  return kind.mixer != Mixer::kAttention && kind.mixer != Mixer::kNone;
}
inline bool HasMlp(const LayerKind& kind) { return kind.mlp.intermediate > 0; }
// Whether some layers read another's keys, or have heads of another number or size.
bool HasUnequalKeys(const DecoderSpec& spec);
// For each layer [layers] the number of earlier ones whose kinds are so: its place among them.
std::vector<int64_t> PlacesOfLayers(const DecoderSpec& spec, bool (*so)(const LayerKind& kind));
// The place of each layer [layers] among those with keys of their own. A layer that reads another's
// has the place of that layer. With DecoderSpec::predicts the place of that layer follows, the
// last.
std::vector<int64_t> KeyPlaces(const DecoderSpec& spec);
// For each layer [layers] that reads another's keys, its number among those of that layer, from 1;
// 0: another layer.
std::vector<int64_t> KeyReaders(const DecoderSpec& spec);
int64_t AttentionLayers(const DecoderSpec& spec);
// The layers with keys of their own.
int64_t KeyLayers(const DecoderSpec& spec);

// A number of each layer's kind [layers].
std::vector<int64_t> OfEachLayer(const DecoderSpec& spec,
                                 const std::function<int64_t(const LayerKind&)>& number);

// The first layer of a kind, and the number of its layers.
struct LayersOfKind {
  int64_t first = 0;
  int64_t count = 0;
};
// All kinds that layers have.
std::vector<LayersOfKind> LayersByKind(const DecoderSpec& spec);

// The first `layers` layers of the model.
DecoderSpec FirstLayers(DecoderSpec spec, int64_t layers);

// The layer alone, with at most so many experts. It tells the tensors of its kind, however large
// the model is.
DecoderSpec OneLayer(DecoderSpec spec, int64_t layer, int64_t experts);

// Whether the bias of the key projection is the mean of all keys, as far as the model tells
// (AttentionInput::key_means). Nothing may come between it and the keys' positions.
bool BiasIsKeyMean(const DecoderSpec& spec);

// The facts about a model that a cache policy needs. Its layers are those with keys alone.
AttentionGeometry Geometry(const DecoderSpec& spec);

// The context of a sequence unless the user asks for another: the longest that changes nothing in
// the model. Only rope scaling that depends on the context, dynamic or longrope, makes it shorter
// than max_context.
int64_t DefaultContext(const DecoderSpec& spec);

// Throws Error(kInput) that names the first id outside the model's vocabulary.
void RequireTokenIds(const DecoderSpec& spec, std::span<const int32_t> ids);

}  // namespace godwit
