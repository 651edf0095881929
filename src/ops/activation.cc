#include "ops/activation.h"

#include <cassert>

namespace godwit::ops {
namespace {

using Elementwise = void (*)(const float*, int64_t, float*) noexcept;

Elementwise Select(const kernels::KernelTable& kernels, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return kernels.silu;
    case Activation::kGeluErf:
      return kernels.gelu_erf;
    case Activation::kGeluTanh:
      return kernels.gelu_tanh;
    case Activation::kRelu:
      return kernels.relu;
  }
  return nullptr;
}

}  // namespace

void Activate(const Exec& exec, Activation activation, MatrixView<float> x) {
  const Elementwise apply = Select(exec.kernels, activation);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) { apply(x.Row(row), x.cols, x.Row(row)); });
}

void ActivateGated(const Exec& exec, Activation activation, MatrixView<const float> gate_up,
                   MatrixView<float> out) {
  assert(gate_up.cols == 2 * out.cols && gate_up.rows == out.rows);
  const Elementwise apply = Select(exec.kernels, activation);
  exec.ParallelRows(out.rows, gate_up.cols, [&](int64_t row) {
    apply(gate_up.Row(row), out.cols, out.Row(row));
    exec.kernels.multiply(out.Row(row), gate_up.Row(row) + out.cols, out.cols, out.Row(row));
  });
}

void Clamp(const Exec& exec, float limit, MatrixView<float> x) {
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    exec.kernels.clamp(x.Row(row), limit, x.cols, x.Row(row));
  });
}

void Add(const Exec& exec, MatrixView<const float> y, MatrixView<float> x) {
  assert(x.rows == y.rows && x.cols == y.cols);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    exec.kernels.add(x.Row(row), y.Row(row), x.cols, x.Row(row));
  });
}

}  // namespace godwit::ops
