// Weights as integers from -8 to 7. A group of neighbouring inputs shares a scale, and perhaps a
// zero point: w is about scale * (integer - zero).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "ops/exec.h"
#include "quant/rounding_feedback.h"
#include "quant/scaled_tensor.h"
#include "quant/scheme.h"
#include "tensor/dtype.h"

namespace godwit::quant {

// The scale of a group of weights w, rounded to `stored`. Clipping one weight makes all others
// finer, so scales around that of the largest magnitude are tried. The least sum of importance * (w
// - scale * integer)^2 wins. Positive, also for zeros.
float GroupScale(std::span<const float> w, std::span<const float> importance, DType stored);

// x / scale to the nearest integer, ties to even, plus zero, within [-8, 7]. x is not NaN.
int8_t ToInt4(float x, float scale, int8_t zero = 0);

// A GroupScale and a zero point in [-8, 7].
struct ScaleAndZero {
  float scale = 0;
  int8_t zero = 0;
};
ScaleAndZero GroupScaleAndZero(std::span<const float> w, std::span<const float> importance,
                               DType stored);

// A matrix of such integers, packed as compressed-tensors does. Input i is integer + 8 in half a
// byte, the lower half if i is even. Rows are padded to 8 inputs.
struct GroupedMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t group = 0;
  std::vector<std::byte> packed;  // [rows, packed_columns()]
  std::vector<float> scales;      // [rows, columns / group]
  std::vector<int8_t> zeros;      // [rows, columns / group]; empty: 0

  int64_t packed_columns() const { return (columns + 7) / 8 * 4; }  // bytes
  // out: [columns]
  void Integers(int64_t row, std::span<int8_t> out) const;
  void Values(int64_t row, std::span<float> out) const;  // scale * (integer - zero)
};

using GroupedMatrices = std::map<std::string, GroupedMatrix, std::less<>>;  // by tensor name

// Quantizes a matrix. grouping.size divides columns. feedback: the correction of rounding errors;
// null: none. read(row, out [columns]) gives a row; several threads call it. `name` is for
// Error(kUnsupported), thrown if an element is not finite.
GroupedMatrix QuantizeInGroups(const Exec& exec, std::string_view name, int64_t rows,
                               int64_t columns, const Grouping& grouping, DType stored,
                               const RoundingFeedback* feedback,
                               FunctionRef<void(int64_t row, std::span<float> out)> read);

// Quantizes a weight, changed by `scaling`. Scales have the type in which they are stored beside
// it.
GroupedMatrix QuantizeInGroups(const Exec& exec, const MatrixPart& part, const Scaling& scaling,
                               const Grouping& grouping, const RoundingFeedback* feedback);

}  // namespace godwit::quant
