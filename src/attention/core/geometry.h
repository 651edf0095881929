// The shape of a model's attention: all that a cache policy knows about the model it serves. Layers
// without attention do not count: policies never hear of them. Nor do layers that attend to another
// layer's keys: their queries come as further queries of that layer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "attention/core/position.h"
#include "ops/attention.h"
#include "ops/select_keys.h"
#include "ops/state_layout.h"

namespace godwit {

struct AttentionGeometry {
  int64_t layers = 0;  // those with keys of their own; others attend as one of these
  // The number of layers behind these that predict tokens and no policy knows: PredictionStep shows
  // them their keys. Their keys lie behind those of the others, in the same pages.
  int64_t predicting = 0;
  int64_t predicting_from = 0;  // the first position whose keys these layers see
  ops::AttentionShape shape;
  // The shape of each layer [layers], where layers have KV heads of different numbers or sizes;
  // empty: all have `shape`.
  std::vector<ops::AttentionShape> layer_shapes = {};
  // The shape of layers that predict; none: `shape`.
  std::optional<ops::AttentionShape> predicting_shape = {};
  // How many more layers attend to the keys of each layer [layers]; empty: none do.
  std::vector<int64_t> readers = {};
  // The encoding of positions: rotated into queries and keys, or a bias on their scores, or
  // neither. Layers may rotate differently: by a base of their own (Gemma 3), or not at all
  // (SmolLM3), where rotary_dim is 0.
  std::vector<RotarySpec> rotaries = {RotarySpec{}};
  // [layers + predicting], an index of `rotaries`, or empty: all 0
  std::vector<int8_t> layer_rotary;
  ops::Alibi alibi;
  // Whether the model tells the mean of its keys (AttentionInput::key_means).
  bool key_means = false;
  // The number of learned positions, which are added to what the model reads. They can neither be
  // counted in a cache nor continued. 0: the model has none.
  int64_t learned_positions = 0;
  // The window of each layer: a query sees the keys at distance less than this, itself included
  // (Mistral's sliding window). 0: all keys.
  std::vector<int64_t> windows;
  // Whether windows are chunks instead (Llama 4). A text is cut into chunks of so many positions,
  // and a query sees those of its own up to itself.
  bool chunked = false;
  // The index by which the model itself chooses the keys that a query sees; none: it sees all that
  // SeenIn shows. With it, layers have one KV head and no windows. A layer chooses by index keys of
  // its own, or sees what the last layer that has some chose.
  std::optional<ops::KeyIndexShape> key_index = {};
  int64_t index_layers = 0;          // with it: the layers that have index keys of their own
  std::vector<bool> has_index = {};  // with it: whether a layer has some [layers]
  // The memory of recurrent layers, which stand beside those with attention. It belongs to a text,
  // whatever its policy.
  StateLayout states = {};

  // The keys that the model itself shows a query in the layer.
  ops::Visible SeenIn(int64_t layer) const {
    const int64_t window = windows[layer];
    if (window == 0) return {};
    return chunked ? ops::Visible{.block = window} : ops::Visible{.window = window};
  }

  const ops::AttentionShape& ShapeOf(int64_t layer) const {
    if (layer >= layers) return predicting_shape ? *predicting_shape : shape;
    return layer_shapes.empty() ? shape : layer_shapes[layer];
  }
  // The first position that sees fewer keys than those up to itself, by key_index.
  int64_t ChoosesFrom() const { return key_index ? key_index->best : INT64_MAX; }

  // The rotation of a layer, as an index of `rotaries`.
  int64_t RotaryOf(int64_t layer) const { return layer_rotary.empty() ? 0 : layer_rotary[layer]; }
  // Whether keys are rotated by frequencies that depend on how long the sequence will be.
  bool RotatesByContext() const { return std::ranges::any_of(rotaries, DependsOnContext); }
};

}  // namespace godwit
