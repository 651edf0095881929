// The forward pass of Mixer::kMamba2.
#pragma once

#include <span>
#include <vector>

#include "model/mixers/mixer.h"
#include "model/mixers/short_convolution.h"
#include "ops/linear_rows.h"
#include "ops/norm.h"
#include "ops/state_piece.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit {

struct Mamba2Weights {
  Weight in;                  // [2 * values + 2 * keys + value_heads, hidden]: z, x, B, C, steps
  Weight out;                 // [hidden, values]
  std::vector<float> rates;   // [value_heads]: ops::Mamba2Numbers, as the next two
  std::vector<float> biases;  // [value_heads]
  std::vector<float> skips;   // [value_heads]
  ops::NormWeights norm;      // [values], or empty: Mamba2Norm::kNone
};

// normed, out: rows of the step, of hidden numbers.
void MixByMamba2(const Exec& exec, const Mamba2Spec& spec, const Mamba2Weights& weights,
                 const ShortConvolutionWeights& convolution,
                 std::span<const ops::StatePiece> pieces, const ops::LinearRows& normed,
                 MatrixView<float> out);

}  // namespace godwit
