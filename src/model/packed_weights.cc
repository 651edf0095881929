#include "model/packed_weights.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/error.h"

namespace godwit {
namespace {

// Groups of the kernels may be smaller than those of the checkpoint, whose scales are then
// repeated: so there is one for each block in which rows of activations are quantized.
GroupFormat FormatOf(const PackedFormat& packed) {
  GroupFormat format = {.codes = packed.bits == 4 ? Codes::k4 : Codes::k8,
                        .scaling = packed.zeros ? Scaling::kZeros : Scaling::kCentred,
                        .group = 128};
  while (packed.group % format.group != 0) format.group /= 2;
  return format;
}

bool IsF16(float x) { return ToFloat(ToF16(x)) == x; }

// A power of two, of which the numbers are multiples that F16 holds as well as it can.
float FactorOf(std::span<const float> scales) {
  if (std::ranges::all_of(scales, IsF16)) return 1;
  float largest = 0;
  for (const float x : scales) largest = std::max(largest, std::fabs(x));
  constexpr int kLargestExponent = 14;  // of 2^15 and more some are rounded to infinity
  constexpr int kLeastExponent = -126;  // of a float that is not subnormal
  return std::ldexp(1.0f, std::max(std::ilogb(largest) - kLargestExponent, kLeastExponent));
}

}  // namespace

std::optional<GroupFormat> FormatOfPacked(const LinearTensors& linear) {
  if (linear.packed.empty()) return std::nullopt;
  const PackedTensors& first = *linear.packed.front();
  const bool same_order = std::ranges::all_of(
      linear.packed, [&](const auto& part) { return part->order == first.order; });
  return same_order ? std::optional(FormatOf(first.format)) : std::nullopt;
}

void ReadPacked(const PackedTensors& tensors, const PackedRows& rows, int64_t row,
                const GroupFormat& format, kernels::GroupedRow& to, float& factor) {
  rows.ReadCodes(row, to.codes);
  const auto scales = rows.Scales(row);
  const auto zeros = rows.Zeros(row);
  factor = FactorOf(scales);
  for (size_t i = 0; i < to.scales.size(); ++i) {
    const size_t group = i * static_cast<size_t>(format.group) / static_cast<size_t>(rows.group());
    to.scales[i] = scales[group] / factor;
    if (!zeros.empty()) to.zeros[i] = zeros[group];
    constexpr float kMostError = 0x1p-11f;
    const float error = std::fabs(ToFloat(ToF16(to.scales[i])) - to.scales[i]);
    if (error <= kMostError * std::fabs(to.scales[i])) continue;
    Throw(ErrorKind::kUnsupported,
          "tensor {}: the scales of output {}, {} and others, are too far apart to be held as f16",
          tensors.scales.name, row, scales[group]);
  }
}

}  // namespace godwit
