// Mixer: the part of a layer in which tokens meet, as plain data. All behind attention are
// recurrent: they remember a state of one size (ops/state_layout.h), and have no keys.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "ops/gated_delta_net.h"
#include "ops/mamba2.h"

namespace godwit {

enum class Mixer {
  kNone,       // the layer is an MLP alone
  kAttention,  // its numbers are those of DecoderSpec, LayerKind::rotary and LayerKind::window
  kShortConvolution,  // LayerKind::convolution
  kGatedDeltaNet,     // LayerKind::delta
  kMamba2,            // LayerKind::mamba; attention may stand beside it
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
// norm is of a value head's numbers (ops/gated_delta_net.h). In Kimi Delta Attention z and the
// gates of decays are products of two narrow matrices, and sigmoid(z) is the factor.
struct GatedDeltaNetSpec {
  ops::DeltaNetShape shape;
  // Whether one tensor has q, k, v and z by key heads. Else one has q, k and v, and another has z.
  bool inputs_by_key_heads = false;
  // Whether q, k and v are tensors of their own, as their parts of the convolution are.
  bool inputs_apart = false;
  // The width between the two narrow matrices of z and of the gates of decays; 0: each is one
  // matrix.
  int64_t narrow = 0;
  bool sigmoid_gate = false;          // sigmoid(z) in the place of silu(z)
  float update_scale = 1;             // ops::DeltaNetWeights
  std::optional<float> norm_epsilon;  // DecoderSpec::norm_epsilon unless given
  // Whether one tensor has the two gates of value heads, by key heads. Else each has its own.
  bool gates_by_key_heads = false;
  // Whether the checkpoint has the rates of decay times -1, and not their logarithms.
  bool rates_negated = false;

  StateSize state() const {
    return {.floats = shape.state_floats(), .row_floats = shape.row_floats()};
  }
  bool operator==(const GatedDeltaNetSpec&) const = default;
};

// The norm of the numbers of each group, beside the gate.
enum class Mamba2Norm { kNone, kBehindGate, kBeforeGate };

// y = out(norm(mamba2(x, B, C, steps) * silu(z))), where in(hidden) = z, x, B, C, steps of all
// heads (ops/mamba2.h). Key heads of the shape are the groups.
struct Mamba2Spec {
  ops::MatrixStateShape shape;
  ops::StepRange steps;
  Mamba2Norm norm = Mamba2Norm::kBehindGate;
  bool in_bias = false;
  bool out_bias = false;
  bool convolution_bias = true;
  bool rates_negated = false;                        // GatedDeltaNetSpec
  std::array<float, 5> in_scales = {1, 1, 1, 1, 1};  // factors on z, x, B, C and steps
  float out_scale = 1;                               // a factor on the result

  int64_t projected() const { return shape.values() + shape.convolved() + shape.value_heads; }
  StateSize state() const {
    return {.floats = shape.state_floats(), .row_floats = shape.row_floats()};
  }
  bool operator==(const Mamba2Spec&) const = default;
};

}  // namespace godwit
