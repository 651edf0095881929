#include "model/mixers/short_convolution.h"

#include "ops/linear.h"
#include "ops/short_convolution.h"

namespace godwit {

static_assert(ShortConvolutionSpec::kMostTaps == ops::kMaxConvolutionTaps);

void MixByShortConvolution(const Exec& exec, const ShortConvolutionSpec& spec,
                           const ShortConvolutionWeights& weights, const Weight& in,
                           const Weight& from, std::span<const ops::StatePiece> pieces,
                           const ops::LinearRows& normed, MatrixView<float> out) {
  Workspace::Scope scope(exec.workspace);
  const auto gated = exec.workspace.Matrix<float>(out.rows, 3 * spec.width);
  const auto mixed = exec.workspace.Matrix<float>(out.rows, spec.width);
  ops::Linear(exec, normed, in, gated);
  ops::ShortConvolution(
      exec,
      {.taps = {weights.taps.data(), spec.taps, spec.width, spec.width}, .bias = weights.bias},
      pieces, gated, mixed);
  ops::Linear(exec, mixed, from, out);
}

}  // namespace godwit
