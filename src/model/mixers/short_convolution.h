// The forward pass of Mixer::kShortConvolution.
#pragma once

#include <span>
#include <vector>

#include "model/mixers/mixer.h"
#include "ops/linear_rows.h"
#include "ops/state_piece.h"
#include "tensor/view.h"
#include "tensor/weight.h"

namespace godwit {

struct ShortConvolutionWeights {
  std::vector<float> taps;  // [taps, width], the oldest position's first
  std::vector<float> bias;  // [width], or empty
};

// in: [3 * width, hidden]: the gate of the input, that of the result, the input; from: [hidden,
// width]. normed, out: rows of the step, of hidden numbers.
void MixByShortConvolution(const Exec& exec, const ShortConvolutionSpec& spec,
                           const ShortConvolutionWeights& weights, const Weight& in,
                           const Weight& from, std::span<const ops::StatePiece> pieces,
                           const ops::LinearRows& normed, MatrixView<float> out);

}  // namespace godwit
