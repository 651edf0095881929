// Weights as integers from -128 to 127 with scales: w is about scale * integer.
//
// The scale is the largest magnitude / 127, rounded to the type that the checkpoint stores. The
// integers are found against the rounded scale. compressed-tensors divides by 127.5 instead, which
// makes the largest weight 127.5: a positive one is cut to 127. With 127 nothing is cut, even where
// rounding the scale to bf16 takes 2^-9 from it: 127 * (1 + 2^-9) still rounds to 127. -128 does
// not occur.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "ops/exec.h"
#include "tensor/dtype.h"

namespace godwit::quant {

// The type in which scales are stored beside a weight. bf16 stays, since readers expect the model's
// type. f16 would lose the scales of small weights, which begin at 6e-5. Every reader of the format
// reads f32 beside f16.
constexpr DType ScaleType(DType weight) {
  return weight == DType::kBF16 ? DType::kBF16 : DType::kF32;
}

// The scale rounded to `stored`. It is at least 2^-23, as in compressed-tensors, so that zeros have
// a scale, too.
float RoundScale(float scale, DType stored);

// The RoundScale of largest / 127.
float StoredScale(float largest, DType stored);

// x to the nearest integer, ties to even, within [lowest, highest]. x is not NaN.
inline float ToInteger(float x, float lowest, float highest) {
  // Adding and subtracting kRound leaves no bits for a fraction. The processor rounds to nearest
  // even, and the loop vectorizes, unlike one with std::nearbyint.
  constexpr float kRound = 0x1.8p23f;
  return (std::clamp(x, lowest, highest) + kRound) - kRound;
}

// x / scale to the nearest integer, ties to even, within [-128, 127].
int8_t ToInt8(float x, float scale);

struct QuantizedMatrix {
  std::vector<int8_t> integers;  // [rows, columns]
  std::vector<float> scales;     // [rows]
};

// Quantizes a matrix. rows_per_scale: neighbours that share a scale; the last may be fewer.
// read(row, out [columns]) gives a row; several threads call it, twice for each row. `name` is for
// Error(kUnsupported), thrown if an element is not finite.
QuantizedMatrix QuantizeMatrix(const Exec& exec, std::string_view name, int64_t rows,
                               int64_t columns, int64_t rows_per_scale, DType stored,
                               FunctionRef<void(int64_t row, std::span<float> out)> read);

}  // namespace godwit::quant
