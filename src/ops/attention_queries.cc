#include "ops/attention_queries.h"

#include <algorithm>
#include <array>
#include <span>

#include "ops/quantize.h"

namespace godwit::ops {
namespace {

using OneRow = std::array<float, kernels::kMaxHeadDim>;

// The row, or its Hadamard transform in `memory` if keys are transformed.
const float* Rotated(const kernels::KernelTable& kernels, bool hadamard, std::span<const float> row,
                     OneRow& memory) {
  if (!hadamard) return row.data();
  std::ranges::copy(row, memory.begin());
  kernels.hadamard(std::ssize(row), memory.data());
  return memory.data();
}

KernelQueries RoundToBF16(const kernels::KernelTable& kernels, bool hadamard,
                          MatrixView<const float> q, float* scratch) {
  const int64_t stride = kernels::PadToLanes(q.cols);
  OneRow rotated;
  std::array<BF16, kernels::kMaxHeadDim> narrow;
  for (int64_t row = 0; row < q.rows; ++row) {
    float* to = scratch + row * stride;
    kernels.f32_to_bf16(Rotated(kernels, hadamard, q.RowSpan(row), rotated), q.cols, narrow.data());
    kernels.bf16_to_f32(narrow.data(), q.cols, to);
    std::fill(to + q.cols, to + stride, 0.0f);
  }
  return {.data = scratch, .stride = stride};
}

KernelQueries Quantize(const kernels::KernelTable& kernels, bool hadamard,
                       MatrixView<const float> q, float* scratch) {
  OneRow rotated;
  float* const scales = scratch;
  auto* const sums = reinterpret_cast<int32_t*>(scales + q.rows);
  auto* const integers = reinterpret_cast<int8_t*>(sums + q.rows);
  const int64_t stride = kernels::PadToLanes(q.cols);
  for (int64_t row = 0; row < q.rows; ++row) {
    const RowQuantization result =
        QuantizeRow(kernels, Rotated(kernels, hadamard, q.RowSpan(row), rotated), q.cols,
                    integers + row * stride);
    scales[row] = result.scale;
    sums[row] = result.sum;
  }
  return {.data = integers, .stride = stride, .scales = scales, .sums = sums};
}

}  // namespace

KernelQueries PrepareQueries(const kernels::KernelTable& kernels, const KvView& kv,
                             bool int8_products, MatrixView<const float> q, float* scratch) {
  if (int8_products) return Quantize(kernels, kv.hadamard, q, scratch);
  if (kv.dtype == DType::kBF16 || kv.dtype == DType::kI8) {
    return RoundToBF16(kernels, kv.hadamard, q, scratch);
  }
  return {.data = q.data, .stride = q.stride};
}

}  // namespace godwit::ops
