#include "ops/activation.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "ops/fill_rows.h"

namespace godwit::ops {
namespace {

void Apply(const kernels::KernelTable& kernels, Activation activation, const float* x, int64_t n,
           float* out) {
  switch (activation) {
    case Activation::kSilu:
      return kernels.silu(x, n, out);
    case Activation::kGeluErf:
      return kernels.gelu_erf(x, n, out);
    case Activation::kGeluTanh:
      return kernels.gelu_tanh(x, n, out);
    case Activation::kRelu:
      return kernels.relu(x, n, out);
    case Activation::kSquaredRelu:
      kernels.relu(x, n, out);
      return kernels.multiply(out, out, n, out);
  }
}

}  // namespace

void Activate(const Exec& exec, Activation activation, MatrixView<const float> x, LinearRows& out) {
  assert(x.rows == out.rows);
  Activate(exec, activation, x, {&out, 1});
}

void Activate(const Exec& exec, Activation activation, MatrixView<const float> x,
              std::span<LinearRows> outs) {
  assert(x.cols == outs.front().cols);
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  FillRows(exec, outs, [&](int64_t row, float* to) {
    Apply(exec.kernels, activation, x.Row(row), x.cols, to);
  });
}

void Activate(const Exec& exec, const Xielu& unit, MatrixView<const float> x, LinearRows& out) {
  assert(x.cols == out.cols && x.rows == out.rows);
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  FillRows(exec, {&out, 1}, [&](int64_t row, float* to) {
    const float* from = x.Row(row);
    for (int64_t i = 0; i < x.cols; ++i) {
      const float v = from[i];
      const float bent =
          v > 0 ? unit.alpha_p * v * v : unit.alpha_n * (std::expm1(std::min(v, unit.eps)) - v);
      to[i] = bent + unit.beta * v;
    }
  });
}

void ActivateGated(const Exec& exec, Activation activation, MatrixView<const float> gate_up,
                   std::span<LinearRows> outs) {
  const int64_t n = outs.front().cols;
  assert(gate_up.cols == 2 * n);
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  FillRows(exec, outs, [&](int64_t row, float* to) {
    const float* gate = gate_up.Row(row);
    Apply(exec.kernels, activation, gate, n, to);
    exec.kernels.multiply(to, gate + n, n, to);
  });
}

void ActivateGated(const Exec& exec, Activation activation, MatrixView<const float> gate_up,
                   MatrixView<float> out) {
  assert(gate_up.cols == 2 * out.cols && gate_up.rows == out.rows);
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  exec.ParallelRows(out.rows, out.cols, [&](int64_t row) {
    const float* gate = gate_up.Row(row);
    float* to = out.Row(row);
    Apply(exec.kernels, activation, gate, out.cols, to);
    exec.kernels.multiply(to, gate + out.cols, out.cols, to);
  });
}

void ActivateGated(const Exec& exec, const ClampedSwiglu& unit, MatrixView<const float> gate_up,
                   std::span<LinearRows> outs) {
  const int64_t n = outs.front().cols;
  assert(gate_up.cols == 2 * n);
  const float alpha = unit.alpha, limit = unit.limit;  // Clang 14 captures no bindings
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  FillRows(exec, outs, [&](int64_t row, float* to) {
    const float* gate = gate_up.Row(row);
    const float* up = gate + n;
    // gate * sigmoid(alpha * gate) = silu(alpha * gate) / alpha. NaN stays.
    for (int64_t i = 0; i < n; ++i) to[i] = alpha * std::min(gate[i], limit);
    exec.kernels.silu(to, n, to);
    for (int64_t i = 0; i < n; ++i) to[i] *= (std::clamp(up[i], -limit, limit) + 1) / alpha;
  });
}

void Clamp(const Exec& exec, float limit, MatrixView<float> x) {
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    exec.kernels.clamp(x.Row(row), limit, x.cols, x.Row(row));
  });
}

void Scale(const Exec& exec, float factor, MatrixView<float> x) {
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    for (float& number : x.RowSpan(row)) number *= factor;
  });
}

void MultiplyBySigmoids(const Exec& exec, MatrixView<const float> gates, MatrixView<float> x) {
  assert(gates.rows == x.rows && gates.cols == x.cols);
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    exec.kernels.times_sigmoid(x.Row(row), gates.Row(row), x.cols, x.Row(row));
  });
}

void ScaleRowsBySigmoids(const Exec& exec, MatrixView<const float> gates, MatrixView<float> x) {
  assert(gates.rows == x.rows && gates.cols == 1);
  const ProfilePart measured(exec.profile, StepPart::kActivation);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    const float factor = 1 / (1 + std::exp(-gates.Row(row)[0]));
    for (float& number : x.RowSpan(row)) number *= factor;
  });
}

// Caps logits in pieces of a row: a row is long, and often there is only one.
void SoftCap(const Exec& exec, float cap, MatrixView<float> x) {
  constexpr int64_t kPiece = 4096;
  const int64_t pieces = (x.cols + kPiece - 1) / kPiece;
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.Parallel(x.rows * pieces, [&](int64_t task, int /*worker*/) {
    const int64_t begin = task % pieces * kPiece, end = std::min(x.cols, begin + kPiece);
    float* const row = x.Row(task / pieces);
    for (int64_t i = begin; i < end; ++i) row[i] = cap * std::tanh(row[i] / cap);
  });
}

void Add(const Exec& exec, MatrixView<const float> y, MatrixView<float> x) {
  assert(x.rows == y.rows && x.cols == y.cols);
  const ProfilePart measured(exec.profile, StepPart::kAdds);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    exec.kernels.add(x.Row(row), y.Row(row), x.cols, x.Row(row));
  });
}

}  // namespace godwit::ops
