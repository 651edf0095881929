#include "model/mixers/gated_delta_net.h"

#include "ops/activation.h"
#include "ops/gated_delta_net.h"
#include "ops/linear.h"

namespace godwit {

void MixByGatedDeltaNet(const Exec& exec, const GatedDeltaNetSpec& spec,
                        const GatedDeltaNetWeights& weights, std::span<const float> taps,
                        const Weight& in, const Weight& from,
                        std::span<const ops::StatePiece> pieces, MatrixView<const float> normed,
                        MatrixView<float> out) {
  const ops::DeltaNetShape& shape = spec.shape;
  const int64_t convolved = shape.convolved(), values = shape.values();
  Workspace::Scope scope(exec.workspace);
  // Results of the rule come behind z, so that both are the sides of a gated unit.
  const auto inner = exec.workspace.Matrix<float>(out.rows, convolved + 2 * values);
  const auto gates = exec.workspace.Matrix<float>(out.rows, 2 * shape.value_heads);
  const auto results = inner.Cols(convolved + values, inner.cols);
  auto rows = ops::NewLinearRows(exec, in, out.rows);
  auto gated = ops::NewLinearRows(exec, from, out.rows);
  ops::SetRows(exec, normed, rows);
  ops::Linear(exec, rows, in, inner.Cols(0, convolved + values));
  ops::Linear(exec, normed, weights.gates, gates);
  ops::GatedDeltaNet(exec, shape,
                     {.taps = {taps.data(), shape.taps, convolved, convolved},
                      .decay_rates = weights.rates,
                      .decay_biases = weights.biases},
                     pieces, inner.Cols(0, convolved), gates, results);
  ops::NormHeads(exec, weights.norm, shape.value_dim, results);
  ops::ActivateGated(exec, ops::Activation::kSilu, inner.Cols(convolved, inner.cols), {&gated, 1});
  ops::Linear(exec, gated, from, out);
}

}  // namespace godwit
