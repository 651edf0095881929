#include "ops/linear_rows.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <numeric>

#include "ops/quantize_asymmetric.h"

namespace godwit::ops {
namespace {

// Memory for rows, which kernels read in pairs or quads. A stride of an odd number of cache lines
// puts rows into different sets of a cache. Rows of 2,048 bytes would lie in two sets.
template <typename T>
LinearRows Rows(const Exec& exec, DType dtype, int64_t rows, int64_t cols, int64_t unit) {
  constexpr int64_t kPerLine = 64 / int64_t{sizeof(T)};
  const int64_t lines = ((cols + unit - 1) / unit * unit + kPerLine - 1) / kPerLine;
  const auto matrix = exec.workspace.Matrix<T>(rows, (lines | 1) * kPerLine);
  return {.dtype = dtype,
          .data = reinterpret_cast<std::byte*>(matrix.data),
          .rows = rows,
          .cols = cols,
          .stride = matrix.stride};
}

RowQuantization Quantize(const kernels::KernelTable& kernels, const float* x, int64_t row,
                         LinearRows& rows, int32_t* zero_point) {
  const InputQuantization& how = rows.quantization;
  const int64_t n = rows.cols;
  auto* out = reinterpret_cast<int8_t*>(rows.Row(row));
  if (rows.outlier_counts != nullptr) {
    return QuantizeRowWithoutOutliers(kernels, x, how.outlier_threshold, n, out,
                                      rows.outliers.Row(row), rows.outlier_counts + row);
  }
  const bool own_scale = how.kind == InputScale::kPerToken;
  if (how.symmetric) {
    return own_scale ? QuantizeRow(kernels, x, n, out)
                     : QuantizeRowWithScale(kernels, x, how.scale, n, out);
  }
  const AsymmetricScale scale =
      own_scale ? AsymmetricScaleOf(RangeOf(x, n)) : AsymmetricScale{how.scale, how.zero_point};
  *zero_point = scale.zero_point;
  return QuantizeRowAsymmetric(x, scale, n, out);
}

// Quantizes a row in the blocks of grouped weights.
void QuantizeBlocks(const kernels::KernelTable& kernels, const float* x, int64_t row,
                    LinearRows& rows) {
  const GroupFormat& format = *rows.groups;
  const int64_t blocks = BlockCount(format, rows.cols), inputs = BlockInputs(format);
  auto* out = reinterpret_cast<int8_t*>(rows.Row(row));
  std::array<float, kMaxGroup> gathered;
  for (int64_t b = 0; b < blocks; ++b) {
    const int64_t n = std::min(inputs, rows.cols - b * inputs);
    int8_t* block = out + b * inputs;
    const float* from = x + b * inputs;
    if (!rows.order.empty()) {
      const auto order = rows.order.subspan(b * inputs);
      for (size_t i = 0; i < static_cast<size_t>(n); ++i) gathered[i] = x[order[i]];
      from = gathered.data();
    }
    rows.scales[row * blocks + b] = QuantizeRow(kernels, from, n, block).scale;
    std::fill(block + n, block + inputs, int8_t{0});
  }
  int16_t* sums = rows.group_sums.Row(row);
  for (int64_t group = 0; group < rows.group_sums.cols; ++group) {
    const int8_t* begin = out + group * format.group;
    sums[group] = static_cast<int16_t>(std::accumulate(begin, begin + format.group, 0));
  }
}

// The one scale of all rows. A row that is not finite is left out here, and found when it is
// quantized.
InputQuantization SettleScale(const Exec& exec, InputQuantization how, MatrixView<const float> x) {
  Workspace::Scope scope(exec.workspace);
  const auto ranges = exec.workspace.Matrix<ValueRange>(1, x.rows).RowSpan(0);
  exec.ParallelRows(x.rows, x.cols, [&](int64_t row) {
    ranges[row] = how.symmetric ? ValueRange{0, exec.kernels.largest_magnitude(x.Row(row), x.cols)}
                                : RangeOf(x.Row(row), x.cols);
  });
  ValueRange all;
  for (const ValueRange& range : ranges) all = Join(all, range);
  if (how.symmetric) {
    how.scale = std::max(0x1p-120f, all.max / 127.0f);  // its inverse does not overflow
  } else {
    const AsymmetricScale scale = AsymmetricScaleOf(all);
    how.scale = scale.scale;
    how.zero_point = scale.zero_point;
  }
  return how;
}

}  // namespace

LinearRows NewLinearRows(const Exec& exec, const Weight& w, int64_t rows) {
  switch (w.dtype) {
    case DType::kBF16:
      return Rows<BF16>(exec, DType::kBF16, rows, w.inputs, 2);
    case DType::kI8: {
      LinearRows result = Rows<int8_t>(exec, DType::kI8, rows, w.inputs, kernels::kQuad);
      result.quantization = w.input;
      result.scales = exec.workspace.Matrix<float>(1, rows).data;
      result.sums = exec.workspace.Matrix<int32_t>(1, rows).data;
      if (!w.input.symmetric && w.input.kind != InputScale::kStatic) {
        result.offsets = exec.workspace.Matrix<float>(1, rows).data;
      }
      if (w.input.outlier_threshold > 0) {
        result.outliers = exec.workspace.Matrix<Outlier>(rows, w.inputs);
        result.outlier_counts = exec.workspace.Matrix<int64_t>(1, rows).data;
      }
      return result;
    }
    case DType::kGrouped: {
      const int64_t blocks = BlockCount(w.groups, w.inputs);
      LinearRows result = Rows<int8_t>(exec, DType::kI8, rows, w.inputs, BlockInputs(w.groups));
      result.groups = &w.groups;
      result.order = w.input_order;
      result.scales = exec.workspace.Matrix<float>(1, rows * blocks).data;
      result.group_sums = exec.workspace.Matrix<int16_t>(rows, blocks * GroupsOfBlock(w.groups));
      return result;
    }
    default:
      return Rows<float>(exec, DType::kF32, rows, w.inputs, 1);
  }
}

void SetRow(const kernels::KernelTable& kernels, const float* x, int64_t row, LinearRows& out) {
  switch (out.dtype) {
    case DType::kBF16: {
      auto* to = reinterpret_cast<BF16*>(out.Row(row));
      kernels.f32_to_bf16(x, out.cols, to);
      if (out.cols % 2 != 0) to[out.cols] = BF16{0};
      return;
    }
    case DType::kI8: {
      if (out.groups != nullptr) return QuantizeBlocks(kernels, x, row, out);
      int32_t zero_point = 0;
      const RowQuantization result = Quantize(kernels, x, row, out, &zero_point);
      out.scales[row] = result.scale;
      out.sums[row] = result.sum;
      if (out.offsets != nullptr) {
        out.offsets[row] = result.scale * static_cast<float>(zero_point);
      }
      return;
    }
    default:
      std::memcpy(out.Row(row), x, static_cast<size_t>(out.cols) * sizeof(float));
  }
}

void SetRows(const Exec& exec, MatrixView<const float> x, LinearRows& out) {
  const ProfilePart measured(exec.profile, StepPart::kQuantizing);
  LinearRows settled = out;
  if (out.quantization.kind == InputScale::kPerTensor) {
    settled.quantization = SettleScale(exec, out.quantization, x);
  }
  exec.ParallelRows(x.rows, x.cols,
                    [&](int64_t row) { SetRow(exec.kernels, x.Row(row), row, settled); });
}

}  // namespace godwit::ops
