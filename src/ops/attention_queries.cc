#include "ops/attention_queries.h"

#include <algorithm>
#include <array>

#include "ops/quantize.h"

namespace godwit::ops {
namespace {

KernelQueries RoundToBF16(const kernels::KernelTable& kernels, MatrixView<const float> q,
                          float* scratch) {
  const int64_t stride = kernels::PadToLanes(q.cols);
  std::array<BF16, kernels::kMaxHeadDim> narrow;
  for (int64_t row = 0; row < q.rows; ++row) {
    float* to = scratch + row * stride;
    kernels.f32_to_bf16(q.Row(row), q.cols, narrow.data());
    kernels.bf16_to_f32(narrow.data(), q.cols, to);
    std::fill(to + q.cols, to + stride, 0.0f);
  }
  return {.data = scratch, .stride = stride};
}

KernelQueries Quantize(const kernels::KernelTable& kernels, MatrixView<const float> q,
                       float* scratch) {
  float* const scales = scratch;
  auto* const sums = reinterpret_cast<int32_t*>(scales + q.rows);
  auto* const integers = reinterpret_cast<int8_t*>(sums + q.rows);
  const int64_t stride = kernels::PadToLanes(q.cols);
  for (int64_t row = 0; row < q.rows; ++row) {
    const RowQuantization result =
        QuantizeRow(kernels, q.Row(row), q.cols, integers + row * stride);
    scales[row] = result.scale;
    sums[row] = result.sum;
  }
  return {.data = integers, .stride = stride, .scales = scales, .sums = sums};
}

}  // namespace

KernelQueries PrepareQueries(const kernels::KernelTable& kernels, DType dtype, bool int8_products,
                             MatrixView<const float> q, float* scratch) {
  if (int8_products) return Quantize(kernels, q, scratch);
  if (dtype == DType::kBF16 || dtype == DType::kI8) return RoundToBF16(kernels, q, scratch);
  return {.data = q.data, .stride = q.stride};
}

}  // namespace godwit::ops
