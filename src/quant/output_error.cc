#include "quant/output_error.h"

#include <span>
#include <utility>
#include <vector>

#include "ops/linear.h"
#include "ops/pack_weight.h"
#include "quant/group_codes.h"
#include "quant/quantize_matrix.h"

namespace godwit::quant {
namespace {

InputQuantization InputOf(const Scheme& scheme, float largest_input) {
  const bool fixed = scheme.input == InputScale::kStatic;
  return {.kind = scheme.input,
          .scale = fixed ? StoredScale(largest_input, DType::kF32) : 0,
          .outlier_threshold = scheme.outlier_threshold};
}

// A part in f32, whose rows `read` gives.
Weight FloatWeight(const Exec& exec, const MatrixPart& part,
                   FunctionRef<void(int64_t row, std::span<float> out)> read) {
  const int64_t outputs = part.rows, inputs = part.columns;
  std::vector<float> values(outputs * inputs);
  exec.ParallelRows(outputs, inputs, [&](int64_t row) {
    read(row, std::span(values).subspan(row * inputs, inputs));
  });
  return ops::PackWeight(
      exec.pool, DType::kF32, outputs, inputs,
      [&](int64_t row) -> const void* { return values.data() + row * inputs; }, DType::kF32);
}

// The part unchanged, except for its divided rows.
Weight ExactWeight(const Exec& exec, const MatrixPart& part, const Scaling& scaling) {
  const Scaling rows_alone{.row_divisors = scaling.row_divisors};
  return FloatWeight(
      exec, part, [&](int64_t row, std::span<float> out) { ReadRow(part, rows_alone, row, out); });
}

Weight GroupedWeight(const Exec& exec, const MatrixPart& part, const Scaling& scaling,
                     const Scheme& scheme) {
  const GroupedMatrix matrix =
      QuantizeInGroups(exec, part, scaling, scheme.grouping(), /*feedback=*/nullptr);
  return FloatWeight(exec, part,
                     [&](int64_t row, std::span<float> out) { matrix.Values(row, out); });
}

Weight Int8Weight(const Exec& exec, const MatrixPart& part, const Scaling& scaling,
                  const Scheme& scheme, float largest_input) {
  const int64_t outputs = part.rows, inputs = part.columns;
  QuantizedMatrix matrix = QuantizeMatrix(
      exec, part.name, outputs, inputs, scheme.outputs_per_scale, ScaleType(part.dtype()),
      [&](int64_t row, std::span<float> out) { ReadRow(part, scaling, row, out); });
  Weight weight = ops::PackWeight(
      exec.pool, DType::kI8, outputs, inputs,
      [&](int64_t row) -> const void* { return matrix.integers.data() + row * inputs; }, DType::kI8,
      std::move(matrix.scales));
  weight.input = InputOf(scheme, largest_input);
  weight.name = ModuleName(part);
  return weight;
}

}  // namespace

OutputError LinearOutputError(const Exec& exec, const LinearTensors& linear,
                              MatrixView<const float> rows, const Scalings& scalings,
                              const Scheme& scheme, float largest_input) {
  OutputError error;
  const std::vector<MatrixPart> parts = PartsOf(linear);
  const auto& s = FindScaling(scalings, parts.front().name).column_factors;
  Workspace::Scope scope(exec.workspace);
  const auto smoothed = exec.workspace.Matrix<float>(rows.rows, rows.cols);
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t i = 0; i < rows.cols; ++i) {
      smoothed.Row(row)[i] = rows.Row(row)[i] / (s.empty() ? 1.0f : s[i]);
    }
  }
  for (const MatrixPart& part : parts) {
    const Scaling& scaling = FindScaling(scalings, part.name);
    const int64_t outputs = part.rows;
    const auto exact = exec.workspace.Matrix<float>(rows.rows, outputs);
    const auto quantized = exec.workspace.Matrix<float>(rows.rows, outputs);
    ops::Linear(exec, rows, ExactWeight(exec, part, scaling), exact);
    // The weight as the checkpoint will hold it.
    const Weight weight = scheme.has_groups()
                              ? GroupedWeight(exec, part, scaling, scheme)
                              : Int8Weight(exec, part, scaling, scheme, largest_input);
    ops::Linear(exec, smoothed, weight, quantized);
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
