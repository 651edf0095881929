#include "ops/short_convolution.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/kernel_table.h"
#include "kernels/short_convolution.h"
#include "ops/profile.h"

namespace godwit::ops {
namespace {

// The columns [first, last) of a piece.
void ConvolvePiece(const ConvolutionWeights& weights, const StatePiece& piece,
                   MatrixView<const float> in, MatrixView<float> out, int64_t first, int64_t last) {
  const int64_t width = out.cols, count = weights.taps.rows;
  const int64_t slot = std::ssize(piece.kept) - piece.rows;  // of the piece's first row
  std::array<const float*, kMaxConvolutionTaps> rows;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const float* const row = in.Row(piece.first_row + i);
    float* const kept = piece.kept[slot + i];
    for (int64_t c = first; c < last; ++c) kept[c] = row[c] * row[2 * width + c];
    FindInputs(piece, i, count, piece.begin, width, rows.data());
    kernels::ShortConvolution({.taps = weights.taps.data,
                               .width = weights.taps.stride,
                               .bias = weights.bias.empty() ? nullptr : weights.bias.data(),
                               .rows = rows.data(),
                               .count = count,
                               .gate = row + width,
                               .first = first,
                               .last = last,
                               .out = out.Row(piece.first_row + i)});
  }
  if (piece.end != nullptr) KeepLastInputs(piece, count, width, first, last, piece.end);
}

}  // namespace

void ShortConvolution(const Exec& exec, const ConvolutionWeights& weights,
                      std::span<const StatePiece> pieces, MatrixView<const float> in,
                      MatrixView<float> out) {
  constexpr int64_t kColumns = 256;  // of a task
  assert(in.rows == out.rows && in.cols == 3 * out.cols && weights.taps.cols == out.cols);
  assert(0 < weights.taps.rows && weights.taps.rows <= kMaxConvolutionTaps);
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  exec.Parallel((out.cols + kColumns - 1) / kColumns, [&](int64_t task) {
    const int64_t first = task * kColumns, last = std::min(out.cols, first + kColumns);
    for (const StatePiece& piece : pieces) ConvolvePiece(weights, piece, in, out, first, last);
  });
}

}  // namespace godwit::ops
