#include "ops/linear_input.h"

#include <cassert>
#include <cstring>

#include "ops/quantize.h"

namespace godwit::ops {
namespace {

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

}  // namespace

LinearInput NewLinearInput(const Exec& exec, const Weight& w, int64_t rows) {
  switch (w.dtype) {
    case DType::kBF16:
      return Rows<BF16>(exec, DType::kBF16, rows, w.inputs, 2);
    case DType::kI8: {
      LinearInput input = Rows<int8_t>(exec, DType::kI8, rows, w.inputs, kernels::kQuad);
      input.fixed_scale = w.input_scale;
      input.scales = exec.workspace.Matrix<float>(1, rows).data;
      input.sums = exec.workspace.Matrix<int32_t>(1, rows).data;
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
      auto* out = reinterpret_cast<int8_t*>(input.Row(row));
      const RowQuantization result =
          input.fixed_scale > 0 ? QuantizeRow(kernels, x, input.fixed_scale, input.cols, out)
                                : QuantizeRow(kernels, x, input.cols, out);
      input.scales[row] = result.scale;
      input.sums[row] = result.sum;
      return;
    }
    default:
      std::memcpy(input.Row(row), x, static_cast<size_t>(input.cols) * sizeof(float));
  }
}

}  // namespace godwit::ops
