// Weights as integers from -8 to 7 with a scale, and perhaps a zero point, for neighbouring inputs:
// w is about scale * (integer - zero).
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

// The scale of a group of weights w, as `stored` has it: of those around what the largest
// magnitude asks for, the one of the least sum of importance * (w - scale * integer)^2, since
// clipping one weight makes all others finer. Positive, so a group of zeros has one, too.
float GroupScale(std::span<const float> w, std::span<const float> importance, DType stored);

// x / scale to the nearest integer, ties to even, plus zero, within [-8, 7]. x is not NaN.
int8_t ToInt4(float x, float scale, int8_t zero = 0);

// Likewise, with a zero point in [-8, 7].
struct ScaleAndZero {
  float scale = 0;
  int8_t zero = 0;
};
ScaleAndZero GroupScaleAndZero(std::span<const float> w, std::span<const float> importance,
                               DType stored);

// Rows lie as compressed-tensors packs them, input i as integer + 8 in half a byte, the lower one
// if i is even, padded to 8 inputs.
struct GroupedMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t group = 0;
  std::vector<std::byte> packed;  // [rows, packed_columns()]
  std::vector<float> scales;      // [rows, columns / group]
  std::vector<int8_t> zeros;      // likewise, or empty: 0

  int64_t packed_columns() const { return (columns + 7) / 8 * 4; }  // bytes
  // out: [columns]
  void Integers(int64_t row, std::span<int8_t> out) const;
  void Values(int64_t row, std::span<float> out) const;  // with their scales
};

using GroupedMatrices = std::map<std::string, GroupedMatrix, std::less<>>;  // by tensor

// grouping.size divides columns. feedback: what rounding does about its errors; null: to the
// nearest. read(row, out [columns]) gives a row; it is called from several threads. `name` is for
// Error(kUnsupported), thrown if an element is not finite.
GroupedMatrix QuantizeInGroups(const Exec& exec, std::string_view name, int64_t rows,
                               int64_t columns, const Grouping& grouping, DType stored,
                               const RoundingFeedback* feedback,
                               FunctionRef<void(int64_t row, std::span<float> out)> read);

// The same of a weight of a checkpoint as `scaling` has it, its scales as they are stored beside
// it.
GroupedMatrix QuantizeInGroups(const Exec& exec, const MatrixPart& part, const Scaling& scaling,
                               const Grouping& grouping, const RoundingFeedback* feedback);

}  // namespace godwit::quant
