#include "model/model_tensors.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/quote.h"
#include "model/linear_finder.h"
#include "model/tensor_finder.h"

namespace godwit {
namespace {

// Finds the tensors of the spec, and collects the faults of the checkpoint.
class Resolver {
 public:
  Resolver(const DecoderSpec& spec, const WeightSource& source)
      : spec_(spec), source_(source), tensors_(spec, source), linears_(spec, tensors_) {}

  ModelTensors Resolve();
  // Looks for all tensors without reporting missing ones.
  TensorFinder::Shapes Wanted();

 private:
  ModelTensors FindAll();
  NormTensors Norm(const std::string& module, int64_t size, bool bias);
  NormTensors HeadNorm(const std::string& pattern, int64_t layer, int64_t heads);
  LatentTensors Latent(int64_t layer);
  void LatentHeads(const std::string& module, LatentTensors& latent);
  void KeyIndex(int64_t layer, LatentTensors& latent);
  LinearTensors Qkv(int64_t layer);
  struct MlpNames {
    std::string gate, up, down;
  };
  MlpTensors Mlp(const MlpSpec& mlp, const MlpNames& names, int64_t layer, int64_t expert = 0);
  MlpTensors StackedExpert(const MlpSpec& mlp, int64_t layer, int64_t expert);
  std::vector<MlpTensors> Experts(int64_t layer);
  void Attention(int64_t index, LayerTensors& layer);
  void ShortConvolution(int64_t index, LayerTensors& layer);
  void GatedDeltaNet(int64_t index, LayerTensors& layer);
  void Mamba2(int64_t index, LayerTensors& layer);
  void Mixing(int64_t index, LayerTensors& layer);
  void MlpOrExperts(int64_t index, LayerTensors& layer);
  void Projections(int64_t index, int64_t inner, int64_t outer, bool bias, LayerTensors& layer);
  void BranchNorms(int64_t index, LayerTensors& layer);
  void LayerEnd(int64_t index, LayerTensors& layer);
  void Streams(int64_t index, LayerTensors& layer);
  LayerTensors Layer(int64_t index);
  void LayerTable(ModelTensors& tensors);
  PredictionTensors Prediction();
  // A name of a layer, and of its expert or head. The layer that predicts may have others.
  std::string Numbered(const std::string& pattern, int64_t layer, int64_t expert = 0) const;
  void Embedding(ModelTensors& tensors);
  void ReportUnexpected();

  const DecoderSpec& spec_;
  const WeightSource& source_;
  TensorFinder tensors_;
  LinearFinder linears_;
};

NormTensors Resolver::Norm(const std::string& module, int64_t size, bool bias) {
  const bool gain = spec_.norm_gain;
  return {.size = size,
          .weight = gain ? tensors_.Want(module + ".weight", {size}) : nullptr,
          .bias = gain && bias ? tensors_.Want(module + ".bias", {size}) : nullptr};
}

std::string Resolver::Numbered(const std::string& pattern, int64_t layer, int64_t expert) const {
  if (!spec_.predicts || layer != spec_.layers) {
    return fmt::format(fmt::runtime(pattern), layer, expert);
  }
  constexpr std::string_view kLayer = "model.layers.{}";
  const size_t begin = pattern.find(kLayer);
  assert(begin != std::string::npos);
  return spec_.prediction->layer +
         fmt::format(fmt::runtime(pattern.substr(begin + kLayer.size())), expert);
}

NormTensors Resolver::HeadNorm(const std::string& pattern, int64_t layer, int64_t heads) {
  const int64_t dim = KindOf(spec_, layer).head_dim;
  const std::string module = Numbered(pattern, layer);
  if (spec_.qk_norm == QkNorm::kHeads || spec_.qk_norm == QkNorm::kHeadsThenGains) {
    return Norm(module, dim, /*bias=*/false);
  }
  if (spec_.qk_norm_by_head) {
    NormTensors norm{.size = heads * dim};
    for (int64_t head = 0; head < heads; ++head) {
      norm.heads.push_back(tensors_.Want(Numbered(pattern, layer, head) + ".weight", {dim}));
    }
    return norm;
  }
  const std::vector<int64_t> shape =
      spec_.qk_norm == QkNorm::kEachHead ? std::vector{heads, dim} : std::vector{heads * dim};
  return {.size = heads * dim, .weight = tensors_.Want(module + ".weight", shape)};
}

LatentTensors Resolver::Latent(int64_t layer) {
  const ModuleNames& names = spec_.names;
  const LatentAttention& shape = *spec_.latent;
  const int64_t hidden = spec_.hidden_size;
  LatentTensors latent;
  if (shape.query_rank > 0) {
    latent.query_down = linears_.Find({{Numbered(names.query_down, layer), shape.query_rank}},
                                      hidden, spec_.qkv_bias);
    latent.query_norm = Norm(Numbered(names.query_down_norm, layer), shape.query_rank, false);
  }
  latent.query = linears_.Find({{Numbered(names.q, layer), spec_.heads * shape.query_dim()}},
                               shape.query_rank > 0 ? shape.query_rank : hidden, /*bias=*/false);
  latent.kv_down =
      linears_.Find({{Numbered(names.kv_down, layer), shape.cached_dim()}}, hidden, spec_.qkv_bias);
  latent.kv_norm = Norm(Numbered(names.kv_down_norm, layer), shape.kv_rank, /*bias=*/false);
  if (spec_.interleaved_rotary) {
    latent.query.pairs_period = shape.query_dim();
    latent.query.pairs_first = shape.plain_dim;
    latent.kv_down.pairs_period = shape.cached_dim();
    latent.kv_down.pairs_first = shape.kv_rank;
  }
  if (spec_.key_index && !KindOf(spec_, layer).shares_choice) KeyIndex(layer, latent);
  if (!shape.heads_apart) {
    LatentHeads(Numbered(names.kv_up, layer), latent);
    return latent;
  }
  for (int64_t head = 0; head < spec_.heads; ++head) {
    latent.keys.push_back(linears_.Find({{Numbered(names.head_keys, layer, head), shape.kv_rank}},
                                        shape.plain_dim, /*bias=*/false));
    latent.values.push_back(
        linears_.Find({{Numbered(names.head_values, layer, head), shape.value_dim}}, shape.kv_rank,
                      /*bias=*/false));
  }
  return latent;
}

void Resolver::KeyIndex(int64_t layer, LatentTensors& latent) {
  const ModuleNames& names = spec_.names;
  const KeyIndexSpec& index = *spec_.key_index;
  const int64_t hidden = spec_.hidden_size;
  latent.index_query =
      linears_.Find({{Numbered(names.index_query, layer), index.heads * index.head_dim}},
                    spec_.latent->query_rank, /*bias=*/false);
  latent.index_key = linears_.Find({{Numbered(names.index_key, layer), index.head_dim}}, hidden,
                                   /*bias=*/false);
  latent.index_norm = Norm(Numbered(names.index_key_norm, layer), index.head_dim, /*bias=*/true);
  latent.index_weights =
      linears_.Find({{Numbered(names.index_weights, layer), index.heads}}, hidden, /*bias=*/false);
  if (!index.interleaved_rotary) return;
  for (LinearTensors* linear : {&latent.index_query, &latent.index_key}) {
    linear->pairs_period = index.head_dim;
    linear->pairs_rows = spec_.latent->rotary_dim;
  }
}

// Splits one matrix. For every head it has the rows of its keys, then the rows of its values.
void Resolver::LatentHeads(const std::string& module, LatentTensors& latent) {
  const LatentAttention& shape = *spec_.latent;
  const int64_t rows = shape.plain_dim + shape.value_dim;
  const std::vector<int64_t> whole_shape = {spec_.heads * rows, shape.kv_rank};
  const TensorInfo* whole = tensors_.Want(module + ".weight", whole_shape);
  if (whole == nullptr || whole->shape != whole_shape) return;
  if (!whole->dtype || spec_.quantization.Find(tensors_.Name(module)) != nullptr) {
    tensors_.problems().Add(
        "tensor {} has type {}, expected F32, F16 or BF16, because its heads are split",
        whole->name, whole->dtype_name);
    return;
  }
  for (int64_t head = 0; head < spec_.heads; ++head) {
    const auto slice = [&](int64_t begin, int64_t count, std::string_view what) {
      return tensors_.Slice(*whole, head * rows + begin, {count, shape.kv_rank},
                            fmt::format("{}.{}.{}.weight", tensors_.Name(module), what, head));
    };
    LinearTensors& keys = latent.keys.emplace_back();
    keys.parts = {slice(0, shape.plain_dim, "keys")};
    keys.transposed = true;
    latent.values.emplace_back().parts = {slice(shape.plain_dim, shape.value_dim, "values")};
  }
}

LinearTensors Resolver::Qkv(int64_t layer) {
  const ModuleNames& names = spec_.names;
  const LayerKind& kind = KindOf(spec_, layer);
  const int64_t q_rows = spec_.heads * kind.head_dim;
  const int64_t kv_rows = kind.kv_heads * kind.head_dim;
  std::vector<std::pair<std::string, int64_t>> parts;
  if (spec_.qkv_layout == QkvLayout::kSeparate) {
    parts = {{Numbered(names.q, layer), spec_.gated_attention ? 2 * q_rows : q_rows}};
    if (HasKeys(kind)) parts.emplace_back(Numbered(names.k, layer), kv_rows);
    if (HasKeys(kind) && !kind.keys_are_values) {
      parts.emplace_back(Numbered(names.v, layer), kv_rows);
    }
  } else {
    parts = {{Numbered(names.qkv, layer), q_rows + 2 * kv_rows}};
  }
  LinearTensors qkv = linears_.Find(parts, spec_.hidden_size, spec_.qkv_bias, spec_.transposed);
  qkv.grouped = spec_.qkv_layout == QkvLayout::kGrouped;
  qkv.interleaved = spec_.interleaved_rotary;
  qkv.gated = spec_.gated_attention;
  return qkv;
}

MlpTensors Resolver::Mlp(const MlpSpec& mlp, const MlpNames& names, int64_t layer, int64_t expert) {
  std::vector<std::pair<std::string, int64_t>> up;
  if (mlp.gated && !mlp.fused) {
    up.emplace_back(Numbered(names.gate, layer, expert), mlp.intermediate);
  }
  up.emplace_back(Numbered(names.up, layer, expert),
                  mlp.gated && mlp.fused ? 2 * mlp.intermediate : mlp.intermediate);
  return {.up = linears_.Find(up, spec_.hidden_size, mlp.bias, spec_.transposed),
          .down = linears_.Find({{Numbered(names.down, layer, expert), spec_.hidden_size}},
                                mlp.intermediate, mlp.bias, spec_.transposed)};
}

MlpTensors Resolver::StackedExpert(const MlpSpec& mlp, int64_t layer, int64_t expert) {
  assert(mlp.gated && mlp.fused);
  MlpTensors tensors{.up = linears_.FindStacked(Numbered(spec_.names.up, layer), mlp,
                                                2 * mlp.intermediate, spec_.hidden_size, expert),
                     .down = linears_.FindStacked(Numbered(spec_.names.down, layer), mlp,
                                                  spec_.hidden_size, mlp.intermediate, expert)};
  tensors.up.alternating = mlp.alternating;
  for (const std::string& name : {spec_.names.per_expert_gate, spec_.names.per_expert_up}) {
    tensors.up.apart.push_back(tensors_.Name(Numbered(name, layer, expert)));
  }
  tensors.down.apart = {tensors_.Name(Numbered(spec_.names.per_expert_down, layer, expert))};
  return tensors;
}

std::vector<MlpTensors> Resolver::Experts(int64_t layer) {
  const ModuleNames& names = spec_.names;
  const MlpSpec& stored = KindOf(spec_, layer).mlp;
  MlpSpec mlp = stored;
  MlpNames own{.gate = names.gate, .up = names.up, .down = names.down};
  bool stacked = false;
  if (mlp.stacked) {
    // Formats of quantized checkpoints are for matrices, so each expert has its own tensors there.
    // So have experts that stay in float, although config.json does not say so.
    const std::string down = Numbered(names.per_expert_down, layer);
    stacked = tensors_.Find(down + ".weight") == nullptr &&
              tensors_.Find(down + ".weight_packed") == nullptr;
    own = {.gate = names.per_expert_gate, .up = names.per_expert_up, .down = names.per_expert_down};
    mlp.fused = false;
  }
  std::vector<MlpTensors> experts;
  for (int64_t i = 0; i < mlp.experts; ++i) {
    experts.push_back(stacked ? StackedExpert(stored, layer, i) : Mlp(mlp, own, layer, i));
  }
  return experts;
}

void Resolver::Attention(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  if (spec_.latent) {
    layer.latent = Latent(index);
  } else {
    layer.qkv = Qkv(index);
  }
  const LayerKind& kind = KindOf(spec_, index);
  if (spec_.qk_norm == QkNorm::kRotatedHeads) {
    if (kind.rotary.rotary_dim > 0) layer.q_norm.size = kind.head_dim;
    layer.k_norm = layer.q_norm;
  } else if (spec_.qk_norm != QkNorm::kNone) {
    layer.q_norm = HeadNorm(names.q_norm, index, spec_.heads);
    if (HasKeys(kind)) layer.k_norm = HeadNorm(names.k_norm, index, kind.kv_heads);
  }
  if (spec_.attention_sink == AttentionSink::kLearned) {
    layer.sinks = tensors_.Want(Numbered(names.sinks, index), {spec_.heads});
  }
  const int64_t value_dim = spec_.latent ? spec_.latent->value_dim : kind.head_dim;
  layer.attention_out =
      linears_.Find({{Numbered(names.attention_out, index), hidden}}, spec_.heads * value_dim,
                    spec_.attention_out_bias, spec_.transposed);
}

// Projections of a mixer without attention: into `inner` numbers, and back from `outer`.
void Resolver::Projections(int64_t index, int64_t inner, int64_t outer, bool bias,
                           LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  layer.qkv = linears_.Find({{Numbered(names.mixer_in, index), inner}}, hidden, bias);
  layer.attention_out = linears_.Find({{Numbered(names.mixer_out, index), hidden}}, outer, bias);
}

void Resolver::ShortConvolution(int64_t index, LayerTensors& layer) {
  const ShortConvolutionSpec& convolution = KindOf(spec_, index).convolution;
  const std::string module = Numbered(spec_.names.convolution, index);
  Projections(index, 3 * convolution.width, convolution.width, convolution.bias, layer);
  layer.taps = tensors_.Want(module + ".weight", {convolution.width, 1, convolution.taps});
  if (convolution.bias) {
    layer.convolution_bias = tensors_.Want(module + ".bias", {convolution.width});
  }
}

void Resolver::GatedDeltaNet(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const GatedDeltaNetSpec& delta = KindOf(spec_, index).delta;
  const ops::DeltaNetShape& shape = delta.shape;
  const int64_t hidden = spec_.hidden_size, heads = shape.value_heads;
  const auto find = [&](const std::vector<std::pair<std::string, int64_t>>& parts) {
    std::vector<std::pair<std::string, int64_t>> numbered;
    for (const auto& [name, rows] : parts) numbered.emplace_back(Numbered(name, index), rows);
    return linears_.Find(numbered, hidden, /*bias=*/false);
  };
  LinearTensors& gates = layer.delta.gates;
  if (delta.inputs_by_key_heads) {
    const int64_t values = shape.group() * shape.value_dim;
    layer.qkv = find({{names.mixer_in, shape.convolved() + shape.values()}});
    layer.qkv.blocks = {shape.key_dim, shape.key_dim, values, values};
  } else {
    layer.qkv = find({{names.mixer_in, shape.convolved()}, {names.delta_z, shape.values()}});
  }
  if (delta.gates_by_key_heads) {
    gates = find({{names.delta_gates, 2 * heads}});
    gates.blocks = {shape.group(), shape.group()};
  } else {
    gates = find({{names.delta_update, heads}, {names.delta_decay, heads}});
  }
  layer.attention_out =
      linears_.Find({{Numbered(names.mixer_out, index), hidden}}, shape.values(), /*bias=*/false);
  layer.taps = tensors_.Want(Numbered(names.convolution, index) + ".weight",
                             {shape.convolved(), 1, shape.taps});
  layer.delta.rates = tensors_.Want(Numbered(names.decay_rates, index), {heads});
  layer.delta.rates_negated = delta.rates_negated;
  layer.delta.biases = tensors_.Want(Numbered(names.decay_biases, index), {heads});
  layer.delta.norm =
      tensors_.Want(Numbered(names.mixer_norm, index) + ".weight", {shape.value_dim});
}

void Resolver::Mamba2(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const Mamba2Spec& mamba = KindOf(spec_, index).mamba;
  const ops::MatrixStateShape& shape = mamba.shape;
  const int64_t hidden = spec_.hidden_size, heads = shape.value_heads;
  Mamba2Tensors& tensors = layer.mamba;
  tensors.in =
      linears_.Find({{Numbered(names.mixer_in, index), mamba.projected()}}, hidden, mamba.in_bias);
  tensors.out =
      linears_.Find({{Numbered(names.mixer_out, index), hidden}}, shape.values(), mamba.out_bias);
  const std::string convolution = Numbered(names.convolution, index);
  layer.taps = tensors_.Want(convolution + ".weight", {shape.convolved(), 1, shape.taps});
  if (mamba.convolution_bias) {
    layer.convolution_bias = tensors_.Want(convolution + ".bias", {shape.convolved()});
  }
  tensors.rates = tensors_.Want(Numbered(names.decay_rates, index), {heads});
  tensors.rates_negated = mamba.rates_negated;
  tensors.biases = tensors_.Want(Numbered(names.decay_biases, index), {heads});
  tensors.skips = tensors_.Want(Numbered(names.skips, index), {heads});
  if (mamba.norm != Mamba2Norm::kNone) {
    tensors.norm = tensors_.Want(Numbered(names.mixer_norm, index) + ".weight", {shape.values()});
  }
}

void Resolver::Mixing(int64_t index, LayerTensors& layer) {
  const LayerKind& kind = KindOf(spec_, index);
  if (HasAttention(kind)) Attention(index, layer);
  switch (kind.mixer) {
    case Mixer::kNone:
    case Mixer::kAttention:
      break;
    case Mixer::kShortConvolution:
      ShortConvolution(index, layer);
      break;
    case Mixer::kGatedDeltaNet:
      GatedDeltaNet(index, layer);
      break;
    case Mixer::kMamba2:
      Mamba2(index, layer);
      break;
    case Mixer::kDecayingSum:
      Projections(index, kind.sum.width, kind.sum.width, /*bias=*/false, layer);
      break;
  }
}

void Resolver::BranchNorms(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const auto norm = [&](const std::string& pattern) {
    return Norm(Numbered(pattern, index), hidden, spec_.norm_bias);
  };
  layer.experts_norm = norm(names.experts_norm);
  layer.experts_out_norm = norm(names.experts_out_norm);
  layer.shared_out_norm = norm(names.shared_out_norm);
  layer.router_gains = tensors_.Want(Numbered(names.router_gains, index), {hidden});
  layer.expert_scales =
      tensors_.Want(Numbered(names.expert_scales, index), {KindOf(spec_, index).mlp.experts});
}

void Resolver::Streams(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const StreamsSpec& streams = *spec_.streams;
  const int64_t hidden = spec_.hidden_size, n = streams.count;
  const auto find = [&](const std::string& pattern, int64_t outputs, int64_t inputs) {
    return linears_.Find({{Numbered(pattern, index), outputs}}, inputs, /*bias=*/false);
  };
  layer.stream_norm = Norm(Numbered(names.stream_norm, index), hidden, spec_.norm_bias);
  layer.stream_router = find(names.stream_router, n, hidden);
  layer.stream_predict = find(names.stream_predict, n * n, n);
  layer.stream_correct = find(names.stream_correct, n, n);
  layer.stream_factors = tensors_.Want(Numbered(names.stream_factors, index), {hidden});
  layer.laurel_down = find(names.laurel_down, streams.narrow, hidden);
  layer.laurel_up = find(names.laurel_up, hidden, streams.narrow);
  layer.laurel_norm = Norm(Numbered(names.laurel_norm, index), hidden, spec_.norm_bias);
}

// The tensors of what follows a layer's MLP.
void Resolver::LayerEnd(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  if (spec_.layer_embedding) {
    const int64_t width = spec_.layer_embedding->width;
    layer.embedding_gate =
        linears_.Find({{Numbered(names.layer_gate, index), width}}, hidden, /*bias=*/false);
    layer.embedding_out =
        linears_.Find({{Numbered(names.layer_out, index), hidden}}, width, /*bias=*/false);
    layer.embedding_out_norm = Norm(Numbered(names.layer_out_norm, index), hidden, spec_.norm_bias);
  }
  if (spec_.layer_scales) layer.scale = tensors_.Want(Numbered(names.layer_scale, index), {1});
}

LayerTensors Resolver::Layer(int64_t index) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const auto norm = [&](const std::string& pattern) {
    return Norm(Numbered(pattern, index), hidden, spec_.norm_bias);
  };
  const LayerKind& kind = KindOf(spec_, index);
  const bool mixes = kind.mixer != Mixer::kNone, has_mlp = HasMlp(kind);
  const bool shared = spec_.topology == Topology::kParallelSharedNorm;
  LayerTensors layer;
  if (spec_.input_norms) {
    if (mixes) layer.attention_norm = norm(names.attention_norm);
    if (has_mlp && !shared) layer.mlp_norm = norm(names.mlp_norm);
  }
  if (spec_.output_norms) {
    if (mixes) layer.attention_out_norm = norm(names.attention_out_norm);
    if (has_mlp) layer.mlp_out_norm = norm(names.mlp_out_norm);
  }
  Mixing(index, layer);
  LayerEnd(index, layer);
  if (spec_.streams) Streams(index, layer);
  if (has_mlp) MlpOrExperts(index, layer);
  return layer;
}

void Resolver::MlpOrExperts(int64_t index, LayerTensors& layer) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const LayerKind& kind = KindOf(spec_, index);
  const MlpSpec& mlp = kind.mlp;
  const MlpNames own{.gate = names.gate, .up = names.up, .down = names.down};
  const MlpNames dense{.gate = names.dense_gate, .up = names.dense_up, .down = names.dense_down};
  if (mlp.experts == 0) {
    layer.mlp = Mlp(mlp, spec_.mlp.experts > 0 ? dense : own, index);
    if (!mlp.xielu) return;
    for (const char* number : {"alpha_p", "alpha_n", "beta", "eps"}) {
      layer.xielu.push_back(tensors_.Want(
          fmt::format("{}.{}", Numbered(names.xielu, index), number), {1}, Content::kScale));
    }
    return;
  }
  layer.router =
      linears_.Find({{Numbered(names.router, index), mlp.experts}}, hidden, mlp.router_bias);
  if (mlp.choice_bias)
    layer.choice_bias =
        tensors_.Want(Numbered(names.choice_bias, index), {mlp.experts}, Content::kScale);
  layer.experts = Experts(index);
  if (spec_.branch_norms) BranchNorms(index, layer);
  if (kind.shared_mlp.intermediate > 0) {
    layer.mlp =
        Mlp(kind.shared_mlp, {names.shared_gate, names.shared_up, names.shared_down}, index);
    if (kind.shared_gated) {
      layer.shared_share =
          linears_.Find({{Numbered(names.shared_share, index), 1}}, hidden, /*bias=*/false);
    }
  }
}

void Resolver::LayerTable(ModelTensors& tensors) {
  const ModuleNames& names = spec_.names;
  const LayerEmbedding& embedding = *spec_.layer_embedding;
  const int64_t width = embedding.layers * embedding.width;
  tensors.layer_table = tensors_.Want(names.layer_table + ".weight", {embedding.vocab_size, width});
  tensors.layer_model = linears_.Find({{names.layer_model, width}}, spec_.hidden_size, false);
  tensors.layer_model_norm = Norm(names.layer_model_norm, embedding.width, spec_.norm_bias);
  if (tensors.layer_table != nullptr && tensors.layer_table->blocks != nullptr) {
    tensors_.problems().Add(
        "tensor {} has type {}, expected F32, F16 or BF16, because its rows are "
        "read from the file",
        tensors.layer_table->name, tensors.layer_table->dtype_name);
  }
}

PredictionTensors Resolver::Prediction() {
  const godwit::Prediction& names = *spec_.prediction;
  const int64_t hidden = spec_.hidden_size;
  PredictionTensors tensors;
  tensors.embedding_norm = Norm(names.embedding_norm, hidden, spec_.norm_bias);
  tensors.output_norm = Norm(names.output_norm, hidden, spec_.norm_bias);
  tensors.join = linears_.Find({{names.join, hidden}}, 2 * hidden, /*bias=*/false);
  tensors.layer = Layer(spec_.layers);
  tensors.norm = Norm(names.norm, hidden, spec_.norm_bias);
  return tensors;
}

void Resolver::Embedding(ModelTensors& tensors) {
  const ModuleNames& names = spec_.names;
  const int64_t hidden = spec_.hidden_size;
  const int64_t width = spec_.embedding_size.value_or(hidden);
  const TensorInfo* embedding =
      tensors_.Want(names.embedding + ".weight", {spec_.vocab_size, width});
  if (spec_.tied_head) {
    tensors.head.parts = {embedding};
  } else {
    tensors.head = linears_.Find({{names.head, spec_.vocab_size}}, width, spec_.head_bias);
    if (embedding != nullptr && embedding->blocks != nullptr) {
      tensors.embedding_blocks.parts = {embedding};
    } else {
      tensors.embedding = embedding;
    }
  }
  if (spec_.embedding_norm) {
    tensors.embedding_norm = Norm(names.embedding_norm, hidden, spec_.norm_bias);
  }
  if (spec_.first_learned_position) {
    tensors.positions = tensors_.Want(names.positions + ".weight",
                                      {*spec_.first_learned_position + spec_.max_context, hidden});
  }
  if (spec_.layer_embedding) LayerTable(tensors);
  for (int64_t i = 0; spec_.streams && i < spec_.streams->count - 1; ++i) {
    tensors.streams_in.push_back(
        linears_.Find({{Numbered(names.streams_in, i), hidden}}, hidden, false));
    tensors.streams_out.push_back(
        linears_.Find({{Numbered(names.streams_out, i), hidden}}, hidden, false));
  }
  if (spec_.embedding_size) {
    tensors.project_in = linears_.Find({{names.project_in, hidden}}, width, false);
    tensors.project_out = linears_.Find({{names.project_out, width}}, hidden, false);
  }
}

ModelTensors Resolver::FindAll() {
  ModelTensors tensors;
  Embedding(tensors);
  for (int64_t i = 0; i < spec_.layers; ++i) tensors.layers.push_back(Layer(i));
  if (spec_.final_norm) {
    tensors.final_norm = Norm(spec_.names.final_norm, spec_.hidden_size, spec_.norm_bias);
  }
  if (spec_.predicts) tensors.prediction = Prediction();
  return tensors;
}

TensorFinder::Shapes Resolver::Wanted() {
  FindAll();
  return std::move(tensors_.wanted());
}

// A config.json may ask for millions of tensors, whose names would take gigabytes.
void RefuseOtherSize(const DecoderSpec& spec, const WeightSource& source) {
  constexpr int64_t kMaxMissing = 10000;
  const int64_t wanted = CountTensors(spec).tensors;
  const auto found = std::ssize(source.Names());
  if (wanted - found <= kMaxMissing) return;
  const std::string experts =
      spec.mlp.experts > 0 ? fmt::format(" of {} experts", spec.mlp.experts) : "";
  Throw(ErrorKind::kFormat,
        "{} describes a {} model of {} layers{}, which has {} tensors, but the checkpoint has {}",
        spec.described_by, spec.family, spec.layers, experts, wanted, found);
}

ModelTensors Resolver::Resolve() {
  RefuseOtherSize(spec_, source_);
  ModelTensors tensors = FindAll();
  ReportUnexpected();
  tensors_.problems().ThrowIfAny(
      ErrorKind::kFormat, fmt::format("this checkpoint is not the {} model that its {} describes",
                                      spec_.family, spec_.described_by));
  tensors.int8 = linears_.int8();
  tensors.packed = linears_.packed();
  tensors.slices = std::move(tensors_.slices());
  for (const auto& [name, shape] : tensors_.wanted()) {
    tensors.bytes += static_cast<int64_t>(source_.Find(name)->bytes.size());
  }
  return tensors;
}

void Resolver::ReportUnexpected() {
  std::vector<std::string> harmless = spec_.names.harmless;
  // Some tools save the head although it is the embedding.
  for (const LayerQuantization& quantization : spec_.quantization.Distinct()) {
    if (!quantization.packed) continue;
    const auto unused = UnusedSuffixes(*quantization.packed);
    harmless.insert(harmless.end(), unused.begin(), unused.end());
  }
  if (spec_.tied_head) harmless.push_back(tensors_.Name(spec_.names.head + ".weight"));
  for (const std::string& name : source_.Names()) {
    if (tensors_.wanted().contains(name)) continue;
    const bool known = std::ranges::any_of(
                           harmless, [&](const std::string& end) { return name.ends_with(end); }) ||
                       std::ranges::any_of(spec_.names.others, [&](const std::string& begin) {
                         return name.starts_with(begin);
                       });
    if (!known) {
      tensors_.problems().Add("unexpected tensor {}, {}", Quote(name),
                              source_.Find(name)->Describe());
    }
  }
}

class NoWeights : public WeightSource {
 public:
  const TensorInfo* Find(std::string_view) const override { return nullptr; }
  const std::vector<std::string>& Names() const override { return names_; }
  const std::map<std::string, std::string, std::less<>>& Metadata() const override {
    return metadata_;
  }
  void Release(const TensorInfo&) const override {}

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace

int64_t LinearTensors::stored_outputs() const {
  int64_t outputs = 0;
  for (const TensorInfo* part : parts) outputs += OutputsOf(*part);
  return outputs;
}

int64_t LinearTensors::outputs() const {
  if (taken_outputs.empty()) return stored_outputs();
  int64_t outputs = 0;
  for (const IndexRange& range : taken_outputs) outputs += range.count();
  return outputs;
}

int64_t LinearTensors::PlaceOf(int64_t output) const {
  for (const IndexRange& range : taken_outputs) {
    if (output < range.count()) return range.begin + output;
    output -= range.count();
  }
  assert(taken_outputs.empty());
  return output;
}

std::vector<WantedTensor> WantedTensors(const DecoderSpec& spec) {
  const NoWeights none;
  std::vector<WantedTensor> tensors;
  for (auto& [name, shape] : Resolver(spec, none).Wanted()) {
    tensors.push_back({.name = name, .shape = std::move(shape)});
  }
  return tensors;
}

TensorTotals CountTensors(const DecoderSpec& spec) {
  const auto count = [](DecoderSpec part) {
    part.quantization = {};
    TensorTotals totals;
    for (const WantedTensor& tensor : WantedTensors(part)) {
      ++totals.tensors;
      int64_t elements = 1;
      for (const int64_t size : tensor.shape) elements *= size;
      totals.elements += elements;
    }
    return totals;
  };
  const TensorTotals none = count(FirstLayers(spec, 0));
  TensorTotals totals = none;
  for (const LayersOfKind& layers : LayersByKind(spec)) {
    const int64_t experts = KindOf(spec, layers.first).mlp.experts;
    const TensorTotals one = count(OneLayer(spec, layers.first, 1));
    const TensorTotals two = experts > 1 ? count(OneLayer(spec, layers.first, 2)) : one;
    for (const auto of : {&TensorTotals::tensors, &TensorTotals::elements}) {
      totals.*of += layers.count * (one.*of - none.*of + (experts - 1) * (two.*of - one.*of));
    }
  }
  return totals;
}

namespace {

void AddLinears(const LayerTensors& layer, std::vector<const LinearTensors*>& all) {
  const LatentTensors& latent = layer.latent;
  for (const LinearTensors* linear :
       {&layer.qkv, &layer.delta.gates, &layer.mamba.in, &latent.query_down, &latent.query,
        &latent.kv_down, &latent.index_query, &latent.index_key, &latent.index_weights}) {
    all.push_back(linear);
  }
  for (const LinearTensors& keys : latent.keys) all.push_back(&keys);
  for (const LinearTensors& values : latent.values) all.push_back(&values);
  for (const LinearTensors* linear :
       {&layer.attention_out, &layer.mamba.out, &layer.mlp.up, &layer.mlp.down, &layer.shared_share,
        &layer.embedding_gate, &layer.embedding_out, &layer.stream_router, &layer.stream_predict,
        &layer.stream_correct, &layer.laurel_down, &layer.laurel_up, &layer.router}) {
    all.push_back(linear);
  }
  for (const MlpTensors& expert : layer.experts) {
    for (const LinearTensors* linear : {&expert.up, &expert.down}) all.push_back(linear);
  }
}

}  // namespace

std::vector<const LinearTensors*> LinearsOf(const ModelTensors& tensors) {
  std::vector<const LinearTensors*> all = {&tensors.embedding_blocks, &tensors.project_in,
                                           &tensors.project_out, &tensors.layer_model};
  for (const auto* linears : {&tensors.streams_in, &tensors.streams_out}) {
    for (const LinearTensors& linear : *linears) all.push_back(&linear);
  }
  for (const LayerTensors& layer : tensors.layers) AddLinears(layer, all);
  all.push_back(&tensors.head);
  if (tensors.prediction) {
    all.push_back(&tensors.prediction->join);
    AddLinears(tensors.prediction->layer, all);
  }
  std::erase_if(all, [](const LinearTensors* linear) { return linear->parts.empty(); });
  return all;
}

bool HasPrediction(const DecoderSpec& spec, const WeightSource& source) {
  if (!spec.prediction) return false;
  return std::ranges::any_of(source.Names(), [&](const std::string& name) {
    return name.starts_with(spec.prediction->join + ".");
  });
}

std::string ModuleName(const TensorInfo& weight) {
  return weight.name.substr(0, weight.name.rfind(".weight"));
}

std::string ModuleName(const LinearTensors& linear) { return ModuleName(*linear.parts.front()); }

ModelTensors ResolveTensors(const DecoderSpec& spec, const WeightSource& source) {
  return Resolver(spec, source).Resolve();
}

}  // namespace godwit
