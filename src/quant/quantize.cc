#include "quant/quantize.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tensor/float_bytes.h"

namespace godwit::quant {
namespace {

float Largest(const Exec& exec, std::span<const float> row, std::string_view name) {
  const float largest = exec.kernels.largest_magnitude(row.data(), std::ssize(row));
  if (std::isnan(largest)) {
    Throw(ErrorKind::kUnsupported, "tensor {} holds NaN or infinity, which int8 cannot", name);
  }
  return largest;
}

}  // namespace

float ScaleOf(float largest, DType stored) {
  constexpr float kSmallest = 0x1p-23f;
  const float scale = std::max(largest / 127, kSmallest);
  return stored == DType::kBF16 ? ToFloat(ToBF16(scale)) : scale;
}

int8_t ToInt8(float x, float scale) {
  // Added and taken away, it leaves no bits for a fraction: rounded as the processor rounds, to
  // nearest even, and unlike std::nearbyint in a loop that vectorizes.
  constexpr float kRound = 0x1.8p23f;
  return static_cast<int8_t>((std::clamp(x / scale, -128.0f, 127.0f) + kRound) - kRound);
}

QuantizedMatrix QuantizeMatrix(const Exec& exec, std::string_view name, int64_t rows,
                               int64_t columns, bool scale_for_each_row, DType stored,
                               FunctionRef<void(int64_t row, std::span<float> out)> read) {
  QuantizedMatrix result;
  result.integers.resize(static_cast<size_t>(rows * columns));
  Workspace::Scope scope(exec.workspace);
  const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), columns);
  const auto quantize = [&](int64_t row, std::span<const float> values, float scale) {
    int8_t* out = result.integers.data() + row * columns;
    for (int64_t i = 0; i < columns; ++i) out[i] = ToInt8(values[static_cast<size_t>(i)], scale);
  };
  std::vector<float> largest(static_cast<size_t>(rows));
  if (scale_for_each_row) result.scales.resize(static_cast<size_t>(rows));
  exec.ParallelRows(rows, columns, [&](int64_t row, int worker) {
    const auto values = scratch.RowSpan(worker);
    read(row, values);
    const auto i = static_cast<size_t>(row);
    largest[i] = Largest(exec, values, name);
    if (!scale_for_each_row) return;
    result.scales[i] = ScaleOf(largest[i], stored);
    quantize(row, values, result.scales[i]);
  });
  if (scale_for_each_row) return result;
  result.scales = {ScaleOf(rows == 0 ? 0 : std::ranges::max(largest), stored)};
  exec.ParallelRows(rows, columns, [&](int64_t row, int worker) {
    const auto values = scratch.RowSpan(worker);
    read(row, values);
    quantize(row, values, result.scales[0]);
  });
  return result;
}

}  // namespace godwit::quant
