#include "model/mixers/decaying_sum.h"

#include "ops/decaying_sum.h"
#include "ops/linear.h"

namespace godwit {

void MixByDecayingSum(const Exec& exec, const DecayingSumSpec& spec, const Weight& in,
                      const Weight& from, std::span<const ops::StatePiece> pieces,
                      const ops::LinearRows& normed, MatrixView<float> out) {
  Workspace::Scope scope(exec.workspace);
  const auto values = exec.workspace.Matrix<float>(out.rows, spec.width);
  const auto sums = exec.workspace.Matrix<float>(out.rows, spec.width);
  ops::Linear(exec, normed, in, values);
  ops::DecayingSum(exec, spec.decay, pieces, values, sums);
  ops::Linear(exec, sums, from, out);
}

}  // namespace godwit
