#include "ops/key_product.h"

#include <algorithm>

#include "ops/quantize.h"
#include "ops/widen_tile.h"

namespace godwit::ops {

KeyProduct::KeyProduct(const Exec& exec, const KvView& kv, MatrixView<const float> q)
    : kernels_(exec.kernels),
      kv_(kv),
      q_(q),
      head_dim_(q.cols),
      parts_(kv.dtype == DType::kI8 ? 2 : 1) {
  const int64_t rows = q.rows * parts_, width = kernels::PadToLanes(q.cols);
  if (kv.dtype == DType::kBF16) {
    const auto rounded = exec.workspace.Matrix<BF16>(rows, width);
    for (int64_t row = 0; row < rows; ++row) {
      std::fill_n(rounded.Row(row), width, BF16{});
      exec.kernels.f32_to_bf16(q.Row(row), q.cols, rounded.Row(row));
    }
    Take(rounded);
  } else if (kv.dtype == DType::kI8) {
    scales_ = exec.workspace.Matrix<float>(1, rows).data;
    sums_ = exec.workspace.Matrix<int32_t>(1, rows).data;
    const auto integers = exec.workspace.Matrix<int8_t>(rows, width);
    const auto rest = exec.workspace.Matrix<float>(1, q.cols).RowSpan(0);
    for (int64_t row = 0; row < rows; ++row) {
      if (row % 2 == 0) {
        std::copy_n(q.Row(row / 2), q.cols, rest.data());
        if (kv.hadamard) exec.kernels.hadamard(q.cols, rest.data());
      } else {
        SubtractRounded(integers.Row(row - 1), scales_[row - 1], q.cols, rest.data());
      }
      const auto part = QuantizeRow(exec.kernels, rest.data(), q.cols, integers.Row(row));
      scales_[row] = part.scale;
      sums_[row] = part.sum;
    }
    Take(integers);
  } else {
    Take(q);
  }
}

int64_t KeyProduct::ScratchFloats(const KvView& kv, int64_t head_dim, int64_t rows) {
  const int64_t keys = kv.narrow_keys ? WidenedKeyBytes(head_dim) : 0;
  return 2 * rows * kTileTokens + keys / static_cast<int64_t>(sizeof(float));
}

void KeyProduct::Score(int64_t first, int64_t rows, int64_t head, int64_t tile, float* scratch,
                       float* scores, int64_t stride) const {
  const bool split = parts_ == 2;
  kernels::GemmArgs args{
      .a = rows_ + first * parts_ * row_bytes_,
      .a_stride = stride_,
      .w = WidenedKeys(kernels_, kv_, head_dim_, head, tile, scratch + 2 * rows * kTileTokens),
      .bias = nullptr,
      .out = split ? scratch : scores,
      .out_stride = split ? kTileTokens : stride,
      .rows = rows * parts_,
      .k = head_dim_,
      .columns = kTileTokens,
      .panel_begin = 0,
      .panel_end = 1};
  switch (kv_.dtype) {
    case DType::kF16:
      return kernels_.gemm_f16(args);
    case DType::kBF16:
      return kernels_.gemm_bf16(args);
    case DType::kI8:
      break;
    default:
      return kernels_.gemm_f32(args);
  }
  args.a_scales = scales_ + first * parts_;
  args.a_sums = sums_ + first * parts_;
  args.w_scales = kv_.Scales(head, tile);
  kernels_.gemm_i8(args);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const parts = scratch + row * 2 * kTileTokens;
    kernels_.add(parts, parts + kTileTokens, kTileTokens, scores + row * stride);
  }
  if (const BF16* const centre = kv_.Centre(head, tile)) {
    kernels_.centre_scores({.q = q_.Row(first),
                            .q_stride = q_.stride,
                            .rows = rows,
                            .centre = centre,
                            .head_dim = head_dim_,
                            .scale = 1,
                            .bias = scores,
                            .bias_stride = stride});
  }
}

template <class T>
void KeyProduct::Take(MatrixView<T> rows) {
  rows_ = reinterpret_cast<const std::byte*>(rows.data);
  stride_ = rows.stride;
  row_bytes_ = rows.stride * static_cast<int64_t>(sizeof(T));
}

}  // namespace godwit::ops
