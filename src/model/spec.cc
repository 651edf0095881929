#include "model/spec.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace godwit {

namespace {

int64_t KindIndex(const DecoderSpec& spec, int64_t layer) {
  return spec.layer_kind.empty() ? 0 : spec.layer_kind[layer];
}

// The index of `one` in the list, at whose end it is added if it is new.
template <typename T>
int64_t IndexIn(std::vector<T>& list, const T& one) {
  const auto found = std::ranges::find(list, one);
  const int64_t index = found - list.begin();
  if (found == list.end()) list.push_back(one);
  return index;
}

StateSize StateSizeOf(const LayerKind& kind) {
  switch (kind.mixer) {
    case Mixer::kNone:
    case Mixer::kAttention:
      return {};
    case Mixer::kShortConvolution:
      return kind.convolution.state();
    case Mixer::kGatedDeltaNet:
      return kind.delta.state();
    case Mixer::kMamba2:
      return kind.mamba.state();
    case Mixer::kDecayingSum:
      return kind.sum.state();
  }
  return {};
}

ops::AttentionShape ShapeOf(const DecoderSpec& spec, const LayerKind& kind) {
  std::optional<int64_t> values_from;
  if (spec.latent) values_from = spec.latent->values_from();
  return {.heads = spec.heads,
          .kv_heads = kind.kv_heads,
          .head_dim = kind.head_dim,
          .scale = spec.score_scale.value_or(1.0f / std::sqrt(static_cast<float>(kind.head_dim))),
          .score_cap = spec.score_cap.value_or(0),
          .values_from = values_from};
}

ops::AttentionShape ShapeOf(const Eagle3Spec& head) {
  return {.heads = head.heads,
          .kv_heads = head.kv_heads,
          .head_dim = head.head_dim,
          .scale = 1.0f / std::sqrt(static_cast<float>(head.head_dim))};
}

StateLayout StatesOf(const DecoderSpec& spec) {
  StateLayout states;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const LayerKind& kind = KindOf(spec, layer);
    if (!IsRecurrent(kind)) continue;
    const StateSize size = StateSizeOf(kind);
    ++states.layers;
    states.floats = std::max(states.floats, size.floats);
    states.row_floats = std::max(states.row_floats, size.row_floats);
  }
  return states;
}

}  // namespace

ops::KeyIndexShape KeyIndexSpec::shape() const {
  return {.heads = heads,
          .head_dim = head_dim,
          .best = best,
          .scale = 1 / std::sqrt(static_cast<float>(head_dim)),
          .weight_scale = 1 / std::sqrt(static_cast<float>(heads))};
}

const LayerKind& KindOf(const DecoderSpec& spec, int64_t layer) {
  if (spec.predicts && layer == spec.layers) return spec.prediction->kind;
  const int64_t kind = KindIndex(spec, layer);
  if (kind == 0) return spec;
  return spec.other_kinds[kind - 1];
}

void RequestPrediction(DecoderSpec& spec) {
  if (!spec.prediction) {
    Throw(ErrorKind::kUnsupported,
          "this {} model has no layer that predicts tokens: expected num_nextn_predict_layers or "
          "mtp_num_hidden_layers of 1 in its {}, found none that godwit knows",
          spec.family, spec.described_by);
  }
  if (!spec.prediction->unsupported.empty()) {
    Throw(ErrorKind::kUnsupported,
          "the layer that predicts tokens is another than godwit computes: {} has {}",
          spec.described_by, spec.prediction->unsupported);
  }
  spec.predicts = true;
}

void ChangeLayers(DecoderSpec& spec, const std::function<void(int64_t, LayerKind&)>& change) {
  const LayerKind& usual = spec;
  std::vector<LayerKind> others;
  std::vector<int8_t> layer_kind;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    LayerKind kind = KindOf(spec, layer);
    change(layer, kind);
    const int64_t index = kind == usual ? 0 : IndexIn(others, kind) + 1;
    assert(index <= INT8_MAX);
    layer_kind.push_back(static_cast<int8_t>(index));
  }
  if (others.empty()) layer_kind.clear();
  spec.other_kinds = std::move(others);
  spec.layer_kind = std::move(layer_kind);
}

void ChangeLayers(DecoderSpec& spec, const std::vector<bool>& layers,
                  const std::function<void(LayerKind&)>& change) {
  ChangeLayers(spec, [&](int64_t layer, LayerKind& kind) {
    if (layers[layer]) change(kind);
  });
}

std::vector<int64_t> PlacesOfLayers(const DecoderSpec& spec, bool (*so)(const LayerKind& kind)) {
  std::vector<int64_t> places;
  int64_t count = 0;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    places.push_back(count);
    if (so(KindOf(spec, layer))) ++count;
  }
  return places;
}

std::vector<int64_t> KeyPlaces(const DecoderSpec& spec) {
  std::vector<int64_t> places = PlacesOfLayers(spec, HasKeys);
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const LayerKind& kind = KindOf(spec, layer);
    if (!HasAttention(kind) || HasKeys(kind)) continue;
    assert(kind.keys_of < layer && HasKeys(KindOf(spec, kind.keys_of)));
    places[layer] = places[kind.keys_of];
  }
  if (spec.predicts) places.push_back(KeyLayers(spec));
  return places;
}

std::vector<int64_t> KeyReaders(const DecoderSpec& spec) {
  std::vector<int64_t> readers(static_cast<size_t>(spec.layers));
  std::vector<int64_t> found(readers.size());  // of each layer's keys
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const LayerKind& kind = KindOf(spec, layer);
    if (HasAttention(kind) && !HasKeys(kind)) readers[layer] = ++found[kind.keys_of];
  }
  return readers;
}

int64_t AttentionLayers(const DecoderSpec& spec) {
  const auto layers = OfEachLayer(spec, HasAttention);
  return std::ranges::count(layers, 1);
}

int64_t KeyLayers(const DecoderSpec& spec) {
  const auto layers = OfEachLayer(spec, HasKeys);
  return std::ranges::count(layers, 1);
}

bool HasUnequalKeys(const DecoderSpec& spec) {
  return std::ranges::any_of(spec.other_kinds, [&](const LayerKind& kind) {
    return !HasAttention(kind)
               ? false
               : kind.keys_of >= 0 || kind.kv_heads != spec.kv_heads ||
                     kind.head_dim != spec.head_dim || kind.keys_are_values != spec.keys_are_values;
  });
}

std::vector<int64_t> OfEachLayer(const DecoderSpec& spec,
                                 const std::function<int64_t(const LayerKind&)>& number) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < spec.layers; ++i) numbers.push_back(number(KindOf(spec, i)));
  return numbers;
}

std::vector<LayersOfKind> LayersByKind(const DecoderSpec& spec) {
  std::vector<LayersOfKind> kinds(1 + spec.other_kinds.size());
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    LayersOfKind& kind = kinds[KindIndex(spec, layer)];
    if (kind.count++ == 0) kind.first = layer;
  }
  std::erase_if(kinds, [](const LayersOfKind& kind) { return kind.count == 0; });
  return kinds;
}

DecoderSpec FirstLayers(DecoderSpec spec, int64_t layers) {
  spec.layers = layers;
  spec.predicts = false;
  spec.eagle3.reset();
  if (!spec.layer_kind.empty()) spec.layer_kind.resize(layers);
  return spec;
}

DecoderSpec OneLayer(DecoderSpec spec, int64_t layer, int64_t experts) {
  const int64_t kind = KindIndex(spec, layer);
  MlpSpec& mlp = kind == 0 ? spec.mlp : spec.other_kinds[kind - 1].mlp;
  mlp.experts = std::min(mlp.experts, experts);
  spec.layers = 1;
  spec.predicts = false;
  spec.eagle3.reset();
  spec.layer_kind = {static_cast<int8_t>(kind)};
  return spec;
}

bool BiasIsKeyMean(const DecoderSpec& spec) {
  return spec.qkv_bias && spec.qk_norm == QkNorm::kNone && !spec.latent;
}

AttentionGeometry Geometry(const DecoderSpec& spec) {
  const std::vector<int64_t> places = KeyPlaces(spec);
  std::vector<RotarySpec> rotaries;
  std::vector<int8_t> layer_rotary;
  std::vector<int64_t> windows;
  std::vector<ops::AttentionShape> shapes;
  std::vector<int64_t> readers;
  for (int64_t layer = 0; layer < spec.layers; ++layer) {
    const LayerKind& kind = KindOf(spec, layer);
    if (HasAttention(kind) && !HasKeys(kind)) ++readers[places[layer]];
    if (!HasKeys(kind)) continue;
    readers.push_back(0);
    shapes.push_back(ShapeOf(spec, kind));
    layer_rotary.push_back(static_cast<int8_t>(IndexIn(rotaries, kind.rotary)));
    windows.push_back(kind.window);
  }
  if (spec.predicts) {
    layer_rotary.push_back(static_cast<int8_t>(IndexIn(rotaries, spec.prediction->kind.rotary)));
  }
  std::optional<ops::AttentionShape> predicting_shape;
  if (spec.eagle3) {
    layer_rotary.push_back(static_cast<int8_t>(IndexIn(rotaries, spec.eagle3->rotary)));
    predicting_shape = ShapeOf(*spec.eagle3);
  }
  const ops::AttentionShape usual = shapes.empty() ? ShapeOf(spec, spec) : shapes.front();
  const bool alike = std::ranges::all_of(shapes, [&](const ops::AttentionShape& shape) {
    return shape.kv_heads == usual.kv_heads && shape.head_dim == usual.head_dim;
  });
  if (alike) shapes.clear();
  if (std::ranges::count(readers, 0) == std::ssize(readers)) readers.clear();
  std::optional<ops::KeyIndexShape> key_index;
  std::vector<bool> has_index;
  if (spec.key_index) {
    key_index = spec.key_index->shape();
    for (int64_t layer = 0; layer < spec.layers; ++layer) {
      if (HasKeys(KindOf(spec, layer))) has_index.push_back(!KindOf(spec, layer).shares_choice);
    }
  }
  const int64_t index_layers = std::ranges::count(has_index, true);
  return {.layers = std::ssize(windows),
          .predicting = spec.predicts || spec.eagle3 ? 1 : 0,
          .predicting_from = spec.eagle3 ? 1 : 0,
          .shape = usual,
          .layer_shapes = std::move(shapes),
          .predicting_shape = predicting_shape,
          .readers = std::move(readers),
          .rotaries = std::move(rotaries),
          .layer_rotary = std::move(layer_rotary),
          .alibi = spec.alibi,
          .key_means = BiasIsKeyMean(spec),
          .learned_positions = spec.first_learned_position ? spec.max_context : 0,
          .windows = std::move(windows),
          .chunked = spec.chunked,
          .key_index = key_index,
          .index_layers = index_layers,
          .has_index = std::move(has_index),
          .states = StatesOf(spec)};
}

int64_t DefaultContext(const DecoderSpec& spec) {
  const AttentionGeometry geometry = Geometry(spec);
  const auto rotary = std::ranges::find_if(geometry.rotaries, DependsOnContext);
  return rotary == geometry.rotaries.end() ? spec.max_context : rotary->scaling.original_context;
}

void RequireTokenIds(const DecoderSpec& spec, std::span<const int32_t> ids) {
  for (const int32_t id : ids) {
    if (id >= 0 && id < spec.vocab_size) continue;
    Throw(ErrorKind::kInput, "token id {} is outside the model's vocabulary of {}", id,
          spec.vocab_size);
  }
}

}  // namespace godwit
