#include "model/mixers/gated_delta_net.h"

#include "ops/activation.h"
#include "ops/gated_delta_net.h"
#include "ops/linear.h"

namespace godwit {
namespace {

// out = up(down(x)).
void NarrowProduct(const Exec& exec, MatrixView<const float> x, const Weight& down,
                   const Weight& up, MatrixView<float> out) {
  Workspace::Scope scope(exec.workspace);
  const auto narrow = exec.workspace.Matrix<float>(x.rows, down.outputs);
  ops::Linear(exec, x, down, narrow);
  ops::Linear(exec, narrow, up, out);
}

}  // namespace

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
  const auto gates = exec.workspace.Matrix<float>(out.rows, shape.value_heads + shape.decays());
  const auto z = inner.Cols(convolved, convolved + values);
  const auto results = inner.Cols(convolved + values, inner.cols);
  auto rows = ops::NewLinearRows(exec, in, out.rows);
  auto gated = ops::NewLinearRows(exec, from, out.rows);
  ops::SetRows(exec, normed, rows);
  ops::Linear(exec, rows, in, inner.Cols(0, in.outputs));
  ops::Linear(exec, normed, weights.gates, gates.Cols(0, weights.gates.outputs));
  if (spec.narrow > 0) {
    NarrowProduct(exec, normed, weights.decay_down, weights.decay_up,
                  gates.Cols(shape.value_heads, gates.cols));
    NarrowProduct(exec, normed, weights.z_down, weights.z_up, z);
  }
  ops::GatedDeltaNet(exec, shape,
                     {.taps = {taps.data(), shape.taps, convolved, convolved},
                      .decay_rates = weights.rates,
                      .decay_biases = weights.biases,
                      .update_scale = spec.update_scale},
                     pieces, inner.Cols(0, convolved), gates, results);
  ops::NormHeads(exec, weights.norm, shape.value_dim, results);
  if (spec.sigmoid_gate) {
    ops::MultiplyBySigmoids(exec, z, results);
    ops::SetRows(exec, results, gated);
  } else {
    ops::ActivateGated(exec, ops::Activation::kSilu, inner.Cols(convolved, inner.cols),
                       {&gated, 1});
  }
  ops::Linear(exec, gated, from, out);
}

}  // namespace godwit
