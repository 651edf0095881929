#include "ops/linear_input.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ops/quantize_asymmetric.h"

namespace godwit::ops {
namespace {

using Scale = InputQuantization::Scale;

// The kernels read rows in pairs, or in quads.
template <typename T>
LinearInput Rows(const Exec& exec, DType dtype, int64_t rows, int64_t cols, int64_t unit) {
  const auto matrix = exec.workspace.Matrix<T>(rows, (cols + unit - 1) / unit * unit);
  return {.dtype = dtype,
          .data = reinterpret_cast<std::byte*>(matrix.data),
          .rows = rows,
          .cols = cols,
          .stride = matrix.stride};
}

RowQuantization Quantize(const kernels::KernelTable& kernels, const LinearInput& input, int64_t row,
                         const float* x, int32_t* zero_point) {
  const InputQuantization& how = input.quantization;
  const int64_t n = input.cols;
  auto* out = reinterpret_cast<int8_t*>(input.Row(row));
  if (input.outlier_counts != nullptr) {
    return QuantizeRow(kernels, x, how.outlier_threshold, n, out, input.outliers.Row(row),
                       input.outlier_counts + row);
  }
  const bool own_scale = how.per == Scale::kPerToken;
  if (how.symmetric) {
    return own_scale ? QuantizeRow(kernels, x, n, out) : QuantizeRow(kernels, x, how.scale, n, out);
  }
  const ZeroPointScale scale =
      own_scale ? ScaleOf(RangeOf(x, n)) : ZeroPointScale{how.scale, how.zero_point};
  *zero_point = scale.zero_point;
  return QuantizeRow(x, scale, n, out);
}

// The one scale of all rows. A row that is not finite is left out: it is found when it is
// quantized.
InputQuantization SettleScale(const Exec& exec, InputQuantization how, MatrixView<const float> x) {
  Workspace::Scope scope(exec.workspace);
  const auto ranges = exec.workspace.Matrix<ValueRange>(1, x.rows).RowSpan(0);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    ranges[static_cast<size_t>(row)] =
        how.symmetric ? ValueRange{0, exec.kernels.largest_magnitude(x.Row(row), x.cols)}
                      : RangeOf(x.Row(row), x.cols);
  });
  ValueRange all;
  for (const ValueRange& range : ranges) all = Join(all, range);
  if (how.symmetric) {
    how.scale = std::max(0x1p-120f, all.max / 127.0f);  // whose inverse does not overflow
  } else {
    const ZeroPointScale scale = ScaleOf(all);
    how.scale = scale.scale;
    how.zero_point = scale.zero_point;
  }
  return how;
}

}  // namespace

LinearInput NewLinearInput(const Exec& exec, const Weight& w, int64_t rows) {
  switch (w.dtype) {
    case DType::kBF16:
      return Rows<BF16>(exec, DType::kBF16, rows, w.inputs, 2);
    case DType::kI8: {
      LinearInput input = Rows<int8_t>(exec, DType::kI8, rows, w.inputs, kernels::kQuad);
      input.quantization = w.input;
      input.scales = exec.workspace.Matrix<float>(1, rows).data;
      input.sums = exec.workspace.Matrix<int32_t>(1, rows).data;
      if (!w.input.symmetric && w.input.per != Scale::kStatic) {
        input.offsets = exec.workspace.Matrix<float>(1, rows).data;
      }
      if (w.input.outlier_threshold > 0) {
        input.outliers = exec.workspace.Matrix<Outlier>(rows, w.inputs);
        input.outlier_counts = exec.workspace.Matrix<int64_t>(1, rows).data;
      }
      return input;
    }
    default:
      return Rows<float>(exec, DType::kF32, rows, w.inputs, 1);
  }
}

void SetRow(const kernels::KernelTable& kernels, const LinearInput& input, int64_t row,
            const float* x) {
  switch (input.dtype) {
    case DType::kBF16: {
      auto* out = reinterpret_cast<BF16*>(input.Row(row));
      kernels.f32_to_bf16(x, input.cols, out);
      if (input.cols % 2 != 0) out[input.cols] = BF16{0};
      return;
    }
    case DType::kI8: {
      int32_t zero_point = 0;
      const RowQuantization result = Quantize(kernels, input, row, x, &zero_point);
      input.scales[row] = result.scale;
      input.sums[row] = result.sum;
      if (input.offsets != nullptr) {
        input.offsets[row] = result.scale * static_cast<float>(zero_point);
      }
      return;
    }
    default:
      std::memcpy(input.Row(row), x, static_cast<size_t>(input.cols) * sizeof(float));
  }
}

void SetRows(const Exec& exec, const LinearInput& input, MatrixView<const float> x) {
  LinearInput settled = input;
  if (input.quantization.per == Scale::kPerTensor) {
    settled.quantization = SettleScale(exec, input.quantization, x);
  }
  exec.ParallelRows(x.rows, x.cols,
                    [&](int64_t row) { SetRow(exec.kernels, settled, row, x.Row(row)); });
}

}  // namespace godwit::ops
