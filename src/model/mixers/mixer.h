// Mixer: the part of a layer in which tokens meet, as plain data. All but attention are recurrent:
// they remember a state of one size (ops/state_layout.h), and have no keys.
#pragma once

#include <cstdint>

namespace godwit {

enum class Mixer {
  kAttention,  // its numbers are those of DecoderSpec, LayerKind::rotary and LayerKind::window
  kShortConvolution,  // LayerKind::convolution
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

}  // namespace godwit
