#include "quant/input_products.h"

#include <algorithm>

#include "ops/linear.h"
#include "ops/pack_weight.h"
#include "tensor/view.h"

namespace godwit::quant {
namespace {

constexpr int64_t kTogether = 256;  // rows that one product adds
constexpr int64_t kRowsOfSums = 256;

}  // namespace

int64_t InputProducts::Bytes(int64_t inputs) {
  return (inputs + kTogether) * inputs * int64_t{sizeof(float)};
}

void InputProducts::Add(const Exec& exec, std::span<const float> row) {
  if (inputs_ == 0) {
    inputs_ = std::ssize(row);
    rows_.resize(inputs_ * kTogether);
    sums_.resize(inputs_ * inputs_);
  }
  for (int64_t i = 0; i < inputs_; ++i) rows_[i * kTogether + waiting_] = row[i];
  if (++waiting_ == kTogether) Flush(exec);
}

std::vector<float> InputProducts::Take(const Exec& exec) {
  if (waiting_ > 0) Flush(exec);
  rows_ = {};
  return std::move(sums_);
}

// Every sum is one chain of additions over a batch, and one over the batches.
void InputProducts::Flush(const Exec& exec) {
  Exec unobserved = exec;
  unobserved.observer = nullptr;
  const Weight turned = ops::PackWeight(
      exec.pool, DType::kF32, inputs_, kTogether,
      [&](int64_t input) -> const void* { return rows_.data() + input * kTogether; }, DType::kF32);
  Workspace::Scope scope(exec.workspace);
  const auto products = exec.workspace.Matrix<float>(std::min(inputs_, kRowsOfSums), inputs_);
  for (int64_t begin = 0; begin < inputs_; begin += kRowsOfSums) {
    const int64_t count = std::min(kRowsOfSums, inputs_ - begin);
    const MatrixView<float> out{products.data, count, inputs_, products.stride};
    ops::Linear(
        unobserved,
        MatrixView<const float>{rows_.data() + begin * kTogether, count, kTogether, kTogether},
        turned, out);
    exec.ParallelRows(count, inputs_, [&](int64_t row) {
      float* sums = sums_.data() + (begin + row) * inputs_;
      exec.kernels.add(sums, out.Row(row), inputs_, sums);
    });
  }
  std::ranges::fill(rows_, 0.0f);
  waiting_ = 0;
}

}  // namespace godwit::quant
