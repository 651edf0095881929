#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/tensor_resolver.h"

namespace godwit {

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
  layer.taps = {tensors_.Want(module + ".weight", {convolution.width, 1, convolution.taps})};
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
  std::vector<std::pair<std::string, int64_t>> inputs;
  if (delta.inputs_apart) {
    const std::array widths = {shape.keys(), shape.keys(), shape.values()};
    for (size_t i = 0; i < widths.size(); ++i) {
      inputs.emplace_back(names.delta_inputs[i], widths[i]);
      layer.taps.push_back(tensors_.Want(Numbered(names.delta_convolutions[i], index) + ".weight",
                                         {widths[i], 1, shape.taps}));
    }
  } else {
    inputs = {{names.mixer_in, shape.convolved()}};
    layer.taps = {tensors_.Want(Numbered(names.convolution, index) + ".weight",
                                {shape.convolved(), 1, shape.taps})};
  }
  if (delta.inputs_by_key_heads) {
    const int64_t values = shape.group() * shape.value_dim;
    layer.qkv = find({{names.mixer_in, shape.convolved() + shape.values()}});
    layer.qkv.blocks = {shape.key_dim, shape.key_dim, values, values};
  } else {
    if (delta.narrow == 0) inputs.emplace_back(names.delta_z, shape.values());
    layer.qkv = find(inputs);
  }
  if (delta.narrow > 0) {
    gates = find({{names.delta_update, heads}});
    layer.delta.decay_down = find({{names.delta_decay_down, delta.narrow}});
    layer.delta.z_down = find({{names.delta_z_down, delta.narrow}});
    const auto up = [&](const std::string& name, int64_t outputs) {
      return linears_.Find({{Numbered(name, index), outputs}}, delta.narrow, /*bias=*/false);
    };
    layer.delta.decay_up = up(names.delta_decay, shape.decays());
    layer.delta.z_up = up(names.delta_z, shape.values());
  } else if (delta.gates_by_key_heads) {
    gates = find({{names.delta_gates, 2 * heads}});
    gates.blocks = {shape.group(), shape.group()};
  } else {
    gates = find({{names.delta_update, heads}, {names.delta_decay, heads}});
  }
  layer.attention_out =
      linears_.Find({{Numbered(names.mixer_out, index), hidden}}, shape.values(), /*bias=*/false);
  // Published models with decays of channels store rates as they multiply [rows, heads, channels].
  const std::vector<int64_t> rates =
      shape.channel_decays ? std::vector<int64_t>{1, 1, heads, 1} : std::vector{heads};
  layer.delta.rates = tensors_.Want(Numbered(names.decay_rates, index), rates);
  layer.delta.rates_negated = delta.rates_negated;
  layer.delta.biases = tensors_.Want(Numbered(names.decay_biases, index), {shape.decays()});
  layer.delta.norm_epsilon = delta.norm_epsilon;
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
  layer.taps = {tensors_.Want(convolution + ".weight", {shape.convolved(), 1, shape.taps})};
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

}  // namespace godwit
