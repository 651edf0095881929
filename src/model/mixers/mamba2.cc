#include "model/mixers/mamba2.h"

#include "ops/activation.h"
#include "ops/linear.h"
#include "ops/mamba2.h"

namespace godwit {
namespace {

// Multiplies the parts of a projection by their factors.
void ScaleParts(const Exec& exec, const Mamba2Spec& spec, MatrixView<float> inner) {
  const int64_t keys = spec.shape.keys(), values = spec.shape.values();
  const std::array<int64_t, 5> widths = {values, values, keys, keys, spec.shape.value_heads};
  int64_t first = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    const float factor = spec.in_scales[i];
    if (factor != 1) ops::Scale(exec, factor, inner.Cols(first, first + widths[i]));
    first += widths[i];
  }
}

// rows = the gated unit of z beside results, with its norm.
void GateAndNorm(const Exec& exec, const Mamba2Spec& spec, const ops::NormWeights& norm,
                 MatrixView<float> unit, ops::LinearRows& rows) {
  const int64_t values = unit.cols / 2;
  const int64_t group = values / spec.shape.key_heads;  // numbers that are normalised together
  if (spec.norm == Mamba2Norm::kBeforeGate) {
    ops::NormHeads(exec, norm, group, unit.Cols(values, unit.cols));
  }
  if (spec.norm != Mamba2Norm::kBehindGate) {
    return ops::ActivateGated(exec, ops::Activation::kSilu, unit, {&rows, 1});
  }
  const auto gated = unit.Cols(0, values);
  ops::ActivateGated(exec, ops::Activation::kSilu, unit, gated);
  if (group == values) return ops::Norm(exec, gated, norm, rows);
  ops::NormHeads(exec, norm, group, gated);
  ops::SetRows(exec, gated, rows);
}

}  // namespace

void MixByMamba2(const Exec& exec, const Mamba2Spec& spec, const Mamba2Weights& weights,
                 const ShortConvolutionWeights& convolution,
                 std::span<const ops::StatePiece> pieces, const ops::LinearRows& normed,
                 MatrixView<float> out) {
  const ops::MatrixStateShape& shape = spec.shape;
  const int64_t convolved = shape.convolved(), values = shape.values();
  Workspace::Scope scope(exec.workspace);
  const auto inner = exec.workspace.Matrix<float>(out.rows, spec.projected());
  auto gated = ops::NewLinearRows(exec, weights.out, out.rows);
  ops::Linear(exec, normed, weights.in, inner);
  ScaleParts(exec, spec, inner);
  // Results take the place of x behind z, so that both are the sides of a gated unit.
  ops::Mamba2(exec, shape,
              {.taps = {convolution.taps.data(), shape.taps, convolved, convolved},
               .bias = convolution.bias,
               .decay_rates = weights.rates,
               .step_biases = weights.biases,
               .skips = weights.skips,
               .steps = spec.steps},
              pieces, inner.Cols(values, values + convolved),
              inner.Cols(values + convolved, inner.cols), inner.Cols(values, 2 * values));
  GateAndNorm(exec, spec, weights.norm, inner.Cols(0, 2 * values), gated);
  ops::Linear(exec, gated, weights.out, out);
  if (spec.out_scale != 1) ops::Scale(exec, spec.out_scale, out);
}

}  // namespace godwit
