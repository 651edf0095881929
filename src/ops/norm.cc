#include "ops/norm.h"

#include <cassert>

namespace godwit::ops {
namespace {

void NormRow(const kernels::KernelTable& kernels, const float* x, const NormWeights& norm,
             float* out) {
  const auto n = static_cast<int64_t>(norm.weight.size());
  if (norm.kind == NormKind::kRms) {
    kernels.rms_norm(x, norm.weight.data(), norm.epsilon, n, out);
  } else {
    kernels.layer_norm(x, norm.weight.data(), norm.bias.empty() ? nullptr : norm.bias.data(),
                       norm.epsilon, n, out);
  }
}

}  // namespace

void Norm(const Exec& exec, MatrixView<const float> x, const NormWeights& norm,
          MatrixView<float> out) {
  assert(x.cols == static_cast<int64_t>(norm.weight.size()));
  assert(x.cols == out.cols && x.rows == out.rows);
  exec.ParallelRows(x.rows, x.cols,
                    [&](int64_t row) { NormRow(exec.kernels, x.Row(row), norm, out.Row(row)); });
}

void Norm(const Exec& exec, MatrixView<const float> x, const NormWeights& norm, LinearRows& out) {
  assert(x.cols == static_cast<int64_t>(norm.weight.size()));
  assert(x.cols == out.cols && x.rows == out.rows);
  FillRows(exec, out, [&](int64_t row, float* to) { NormRow(exec.kernels, x.Row(row), norm, to); });
}

void NormHeads(const Exec& exec, const NormWeights& norm, MatrixView<float> x) {
  const auto head_dim = static_cast<int64_t>(norm.weight.size());
  assert(x.cols % head_dim == 0);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    for (float* head = x.Row(row); head != x.Row(row) + x.cols; head += head_dim) {
      NormRow(exec.kernels, head, norm, head);
    }
  });
}

}  // namespace godwit::ops
