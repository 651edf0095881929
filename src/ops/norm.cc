#include "ops/norm.h"

#include <cassert>
#include <iterator>

#include "ops/fill_rows.h"

namespace godwit::ops {
namespace {

// weight, bias: of the norm; bias may be null.
void NormRow(const kernels::KernelTable& kernels, const float* x, const NormWeights& norm,
             const float* weight, const float* bias, int64_t n, float* out) {
  if (norm.kind == NormKind::kRms) {
    kernels.rms_norm(x, weight, norm.epsilon, n, out);
  } else {
    kernels.layer_norm(x, weight, bias, norm.epsilon, n, out);
  }
}

void NormRow(const kernels::KernelTable& kernels, const float* x, const NormWeights& norm,
             float* out) {
  NormRow(kernels, x, norm, norm.weight.data(), norm.bias.empty() ? nullptr : norm.bias.data(),
          std::ssize(norm.weight), out);
}

}  // namespace

void Norm(const Exec& exec, MatrixView<const float> x, const NormWeights& norm,
          MatrixView<float> out) {
  assert(x.cols == static_cast<int64_t>(norm.weight.size()));
  assert(x.cols == out.cols && x.rows == out.rows);
  const ProfilePart measured(exec.profile, StepPart::kNorms);
  exec.ParallelRows(x.rows, x.cols,
                    [&](int64_t row) { NormRow(exec.kernels, x.Row(row), norm, out.Row(row)); });
}

void Norm(const Exec& exec, MatrixView<const float> x, const NormWeights& norm, LinearRows& out) {
  assert(x.cols == static_cast<int64_t>(norm.weight.size()));
  assert(x.cols == out.cols && x.rows == out.rows);
  const ProfilePart measured(exec.profile, StepPart::kNorms);
  FillRows(exec, {&out, 1},
           [&](int64_t row, float* to) { NormRow(exec.kernels, x.Row(row), norm, to); });
}

void NormHeads(const Exec& exec, const NormWeights& norm, int64_t head_dim, MatrixView<float> x) {
  const auto weights = std::ssize(norm.weight);
  assert(x.cols % head_dim == 0 && (weights == head_dim || weights == x.cols));
  assert(norm.bias.empty());
  const ProfilePart measured(exec.profile, StepPart::kNorms);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    for (int64_t col = 0; col < x.cols; col += head_dim) {
      float* head = x.Row(row) + col;
      NormRow(exec.kernels, head, norm, norm.weight.data() + col % weights, /*bias=*/nullptr,
              head_dim, head);
    }
  });
}

}  // namespace godwit::ops
