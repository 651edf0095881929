// The shape of a model's attention: all that a cache policy knows about the model it serves.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/position.h"
#include "ops/attention.h"

namespace godwit {

struct AttentionGeometry {
  int64_t layers = 0;
  ops::AttentionShape shape;
  // Where tokens stand: rotated into queries and keys, or a bias on their scores, or neither.
  RotarySpec rotary;
  // Of layers that turn by another rotation: with a base of their own (Gemma 3), or without one
  // (SmolLM3), where its rotary_dim is 0.
  RotarySpec other_rotary;
  std::vector<bool> turns_otherwise;  // [layers], or empty: none does
  ops::Alibi alibi;
  // Whether the model tells the mean of its keys (AttentionInput::key_means).
  bool key_means = false;
  // Tokens for which the model has learned positions, which are added to what it reads and can
  // neither be counted in a cache nor continued; 0: it has none.
  int64_t learned_positions = 0;
  // Per layer: a query sees the keys at distance less than this, itself included (Mistral's sliding
  // window). 0: all keys.
  std::vector<int64_t> windows;
  // A text is cut into chunks of so many positions instead, and a query sees those of its own up to
  // itself (Llama 4).
  bool chunked = false;

  // What the model itself shows a query in the layer.
  ops::Visible SeenIn(int64_t layer) const {
    const int64_t window = windows[static_cast<size_t>(layer)];
    if (window == 0) return {};
    return chunked ? ops::Visible{.block = window} : ops::Visible{.window = window};
  }

  // 0: by `rotary`, 1: by `other_rotary`.
  size_t RotaryOf(int64_t layer) const {
    return !turns_otherwise.empty() && turns_otherwise[static_cast<size_t>(layer)] ? 1 : 0;
  }
  // Whether keys are turned by frequencies that depend on how long the sequence will be.
  bool RotatesByContext() const {
    return DependsOnContext(rotary) || DependsOnContext(other_rotary);
  }
};

}  // namespace godwit
