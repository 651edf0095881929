// Mixer: the part of a layer in which tokens meet, as plain data. All but attention are recurrent:
// they remember a state of one size (ops/state_layout.h), and have no keys.
#pragma once

#include <cstdint>

#include "ops/gated_delta_net.h"

namespace godwit {

enum class Mixer {
  kAttention,  // its numbers are those of DecoderSpec, LayerKind::rotary and LayerKind::window
  kShortConvolution,  // LayerKind::convolution
  kGatedDeltaNet,     // LayerKind::delta
  kDecayingSum,       // for tests: LayerKind::sum
};

// The numbers that a recurrent layer remembers of a text: at each tile's beginning, and of each
// position of the tile (ops/state_piece.h). 0: none.
struct StateSize {
  int64_t floats = 0;
  int64_t row_floats = 0;
};

// y = out(sums), where sums[t] = decay * sums[t - 1] + in(x)[t] (ops/decaying_sum.h).
struct DecayingSumSpec {
  int64_t width = 0;
  float decay = 0;

  StateSize state() const { return {.floats = width, .row_floats = width}; }
  bool operator==(const DecayingSumSpec&) const = default;
};

// y = out(b * convolution(a * x)), where in(hidden) = a, b, x (ops/short_convolution.h).
struct ShortConvolutionSpec {
  static constexpr int64_t kMostTaps = 65;  // a state is made from the rows of one tile

  int64_t width = 0;
  int64_t taps = 0;   // positions that an output depends on, its own included
  bool bias = false;  // of both projections and of the convolution

  StateSize state() const { return {.floats = (taps - 1) * width, .row_floats = width}; }
  bool operator==(const ShortConvolutionSpec&) const = default;
};

// y = out(norm(delta rule(q, k, v)) * silu(z)), where in(hidden) = q, k, v, z of all heads, and the
// norm is of a value head's numbers (ops/gated_delta_net.h).
struct GatedDeltaNetSpec {
  ops::DeltaNetShape shape;
  // Whether one tensor has q, k, v and z by key heads. Else one has q, k and v, and another has z.
  bool inputs_by_key_heads = false;
  // Whether one tensor has the two gates of value heads, by key heads. Else each has its own.
  bool gates_by_key_heads = false;
  // Whether the checkpoint has the rates of decay times -1, and not their logarithms.
  bool rates_negated = false;

  StateSize state() const {
    return {.floats = shape.state_floats(), .row_floats = shape.row_floats()};
  }
  bool operator==(const GatedDeltaNetSpec&) const = default;
};

}  // namespace godwit
