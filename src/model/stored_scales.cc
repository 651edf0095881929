#include "model/stored_scales.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "ops/quantize_asymmetric.h"

namespace godwit {
namespace {

template <typename T>
[[noreturn]] void RefuseElement(const TensorInfo& tensor, size_t i, T found,
                                std::string_view expected) {
  Throw(ErrorKind::kFormat, "tensor {}: element {} is {}, expected {}", tensor.name, i, found,
        expected);
}

void CheckScales(const TensorInfo& tensor, std::span<const float> scales) {
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] > 0 && std::isnormal(scales[i])) continue;  // its inverse is finite, too
    RefuseElement(tensor, i, scales[i], "a positive number");
  }
}

}  // namespace

std::vector<float> WeightScalesOf(const TensorInfo& tensor, Int8Format format,
                                  std::vector<float> values) {
  if (format == Int8Format::kCompressedTensors) {
    CheckScales(tensor, values);
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    // The scale is 0 for an output whose weights are all 0.
    if (!(values[i] >= 0 && std::isfinite(values[i]))) {
      RefuseElement(tensor, i, values[i], "a number of 0 or more");
    }
    values[i] /= 127;
  }
  return values;
}

float InputScaleOf(const TensorInfo& tensor, std::span<const float> values) {
  CheckScales(tensor, values);
  return values[0];
}

int32_t ZeroPointOf(const TensorInfo& tensor) { return static_cast<int8_t>(tensor.bytes[0]); }

void CheckRowOrder(const TensorInfo& tensor) {
  const auto order = std::to_integer<int>(tensor.bytes[0]);
  if (order != 0) RefuseElement(tensor, 0, order, "0, which means row after row");
}

InputQuantization JoinInputs(std::span<const InputQuantization> parts) {
  InputQuantization joint = *std::ranges::max_element(parts, {}, &InputQuantization::scale);
  if (joint.symmetric || std::ranges::count(parts, joint) == std::ssize(parts)) return joint;
  ops::ValueRange range;
  for (const InputQuantization& part : parts) {
    const auto zero_point = static_cast<float>(part.zero_point);
    range = ops::Join(
        range, {.min = part.scale * (-128 - zero_point), .max = part.scale * (127 - zero_point)});
  }
  const ops::AsymmetricScale scale = ops::AsymmetricScaleOf(range);
  joint.scale = scale.scale;
  joint.zero_point = scale.zero_point;
  return joint;
}

void SetInput(const InputQuantization& input, std::vector<float> row_sums, Weight& weight) {
  weight.input = input;
  if (input.symmetric) return;
  for (size_t i = 0; i < row_sums.size(); ++i) row_sums[i] *= weight.scales[i];
  if (input.kind != InputScale::kStatic) {
    weight.row_sums = std::move(row_sums);
    return;
  }
  const float offset = input.scale * static_cast<float>(input.zero_point);
  weight.bias.resize(row_sums.size());
  for (size_t i = 0; i < row_sums.size(); ++i) weight.bias[i] -= offset * row_sums[i];
}

}  // namespace godwit
