#include "quant/quantize_matrix.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/float_bytes.h"

namespace godwit::quant {
namespace {

float Largest(const Exec& exec, std::span<const float> row, std::string_view name) {
  const float largest = exec.kernels.largest_magnitude(row.data(), std::ssize(row));
  if (std::isnan(largest)) {
    Throw(ErrorKind::kUnsupported, "tensor {} holds NaN or infinity, which cannot be quantized",
          name);
  }
  return largest;
}

}  // namespace

float RoundScale(float scale, DType stored) {
  constexpr float kSmallest = 0x1p-23f;
  const float enough = std::max(scale, kSmallest);
  return stored == DType::kBF16 ? ToFloat(ToBF16(enough)) : enough;
}

float StoredScale(float largest, DType stored) { return RoundScale(largest / 127, stored); }

int8_t ToInt8(float x, float scale) { return static_cast<int8_t>(ToInteger(x / scale, -128, 127)); }

QuantizedMatrix QuantizeMatrix(const Exec& exec, std::string_view name, int64_t rows,
                               int64_t columns, int64_t rows_per_scale, DType stored,
                               FunctionRef<void(int64_t row, std::span<float> out)> read) {
  QuantizedMatrix result;
  result.integers.resize(rows * columns);
  std::vector<float>& scales = result.scales;
  scales.resize(rows);
  Workspace::Scope scope(exec.workspace);
  const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), columns);
  exec.ParallelRows(rows, columns, [&](int64_t row, int worker) {
    const auto values = scratch.RowSpan(worker);
    read(row, values);
    scales[row] = StoredScale(Largest(exec, values, name), stored);
  });
  // Rounding keeps the order, so the largest scale is that of the largest element.
  for (auto begin = scales.begin(); begin != scales.end();) {
    const auto end = begin + std::min(rows_per_scale, scales.end() - begin);
    std::fill(begin, end, *std::max_element(begin, end));
    begin = end;
  }
  exec.ParallelRows(rows, columns, [&](int64_t row, int worker) {
    const auto values = scratch.RowSpan(worker);
    read(row, values);
    int8_t* out = result.integers.data() + row * columns;
    const float scale = scales[row];
    for (int64_t i = 0; i < columns; ++i) out[i] = ToInt8(values[i], scale);
  });
  return result;
}

}  // namespace godwit::quant
