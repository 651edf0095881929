#include "quant/output_error.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ops/linear.h"
#include "ops/pack_weight.h"
#include "ops/quantize.h"
#include "quant/quantize.h"

namespace godwit::quant {
namespace {

// x / s, quantized and back. out may not be x.
void QuantizeInput(const Exec& exec, MatrixView<const float> x, std::span<const float> s,
                   InputScale kind, float largest_input, MatrixView<float> out) {
  float largest = largest_input;
  for (int64_t row = 0; row < x.rows; ++row) {
    for (int64_t i = 0; i < x.cols; ++i) {
      out.Row(row)[i] = x.Row(row)[i] / (s.empty() ? 1.0f : s[static_cast<size_t>(i)]);
    }
    if (kind != InputScale::kTensor) continue;
    const float of_row = exec.kernels.largest_magnitude(out.Row(row), x.cols);
    largest = row == 0 ? of_row : std::max(largest, of_row);
  }
  std::vector<int8_t> integers(static_cast<size_t>(x.cols) + kernels::kQuad);
  for (int64_t row = 0; row < x.rows; ++row) {
    float* values = out.Row(row);
    const float scale =
        kind == InputScale::kToken || largest == 0
            ? ops::QuantizeRow(exec.kernels, values, x.cols, integers.data()).scale
            : ops::QuantizeRow(exec.kernels, values, largest / 127, x.cols, integers.data()).scale;
    for (int64_t i = 0; i < x.cols; ++i) {
      values[i] = scale * static_cast<float>(integers[static_cast<size_t>(i)]);
    }
  }
}

// out = x w^T. w: [outputs, x.cols], dense
void Multiply(const Exec& exec, MatrixView<const float> x, const std::vector<float>& w,
              MatrixView<float> out) {
  const Weight weight = ops::PackWeight(
      exec.pool, DType::kF32, out.cols, x.cols,
      [&](int64_t row) -> const void* { return w.data() + row * x.cols; }, DType::kF32);
  ops::Linear(exec, x, weight, out);
}

}  // namespace

OutputError LinearOutputError(const Exec& exec, const LinearTensors& linear,
                              MatrixView<const float> rows, const Scalings& scalings,
                              const Scheme& scheme, float largest_input) {
  OutputError error;
  const Scaling& first = FindScaling(scalings, linear.parts.front()->name);
  Workspace::Scope scope(exec.workspace);
  const auto quantized_rows = exec.workspace.Matrix<float>(rows.rows, rows.cols);
  QuantizeInput(exec, rows, first.column_factors, scheme.input, largest_input, quantized_rows);
  for (const TensorInfo* part : linear.parts) {
    const Scaling& scaling = FindScaling(scalings, part->name);
    const int64_t outputs = RowsOf(*part), inputs = ColumnsOf(*part);
    const auto exact = exec.workspace.Matrix<float>(rows.rows, outputs);
    const auto quantized = exec.workspace.Matrix<float>(rows.rows, outputs);

    std::vector<float> weight(static_cast<size_t>(outputs * inputs));
    const Scaling rows_alone{.row_divisors = scaling.row_divisors};
    exec.ParallelRows(outputs, inputs, [&](int64_t row) {
      ReadRow(*part, rows_alone, row, std::span(weight).subspan(row * inputs, inputs));
    });
    Multiply(exec, rows, weight, exact);

    const QuantizedMatrix integers = QuantizeMatrix(
        exec, part->name, outputs, inputs, scheme.channel_weights, ScaleType(*part->dtype),
        [&](int64_t row, std::span<float> out) { ReadRow(*part, scaling, row, out); });
    exec.ParallelRows(outputs, inputs, [&](int64_t row) {
      const float scale = integers.scales[scheme.channel_weights ? static_cast<size_t>(row) : 0];
      for (int64_t i = row * inputs; i < (row + 1) * inputs; ++i) {
        const auto at = static_cast<size_t>(i);
        weight[at] = scale * static_cast<float>(integers.integers[at]);
      }
    });
    Multiply(exec, quantized_rows, weight, quantized);

    for (int64_t row = 0; row < rows.rows; ++row) {
      for (int64_t i = 0; i < outputs; ++i) {
        const double y = exact.Row(row)[i];
        const double difference = y - quantized.Row(row)[i];
        error.difference += difference * difference;
        error.exact += y * y;
      }
    }
  }
  return error;
}

}  // namespace godwit::quant
