// The gated short convolution of LFM2 (Liquid AI, arXiv 2511.23404, section 3), a recurrent layer
// on the grid of tiles (state_piece.h):
//   out[t] = b[t] * (sum over j of taps[j] * kept[t - count + 1 + j] + bias), kept[t] = a[t] * x[t]
// in every column, where positions before the text count as zeros. Its state is the last count - 1
// kept rows before a tile; its rows are the kept ones.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "ops/kept_inputs.h"
#include "ops/state_piece.h"
#include "tensor/view.h"

namespace godwit::ops {

struct ConvolutionWeights {
  MatrixView<const float> taps;  // [count, width], the oldest position's first
  std::span<const float> bias;   // [width], or empty
};

// in: [rows, 3 * width], those of all pieces: a, then b, then x. out: [rows, width].
void ShortConvolution(const Exec& exec, const ConvolutionWeights& weights,
                      std::span<const StatePiece> pieces, MatrixView<const float> in,
                      MatrixView<float> out);

}  // namespace godwit::ops
