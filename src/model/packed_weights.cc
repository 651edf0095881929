#include "model/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "base/error.h"

namespace godwit {
namespace {

using Layout = PackedFormat::Layout;

// Levels as multiples of a unit.
struct IntegerLevels {
  std::array<int8_t, 16> integers = {};
  float unit = 1;
  float error = 0;  // the largest
};

// The integers with the unit of the smallest error, where the largest level is at most 127.
IntegerLevels IntegersOf(std::span<const float> levels) {
  float largest = 0;
  for (const float x : levels) largest = std::max(largest, std::fabs(x));
  IntegerLevels best{.error = std::numeric_limits<float>::infinity()};
  constexpr int kMost = 127, kSteps = 8;  // the inverse unit grows by 1/8
  for (int step = kSteps; static_cast<float>(step) * largest <= kMost * kSteps; ++step) {
    IntegerLevels trial{.unit = static_cast<float>(kSteps) / static_cast<float>(step)};
    for (size_t i = 0; i < levels.size(); ++i) {
      const float integer = std::nearbyint(levels[i] / trial.unit);
      trial.integers[i] = static_cast<int8_t>(integer);
      trial.error = std::max(trial.error, std::fabs(integer * trial.unit - levels[i]));
    }
    if (trial.error < best.error) best = trial;
  }
  return best;
}

// The levels of a format that has them.
const IntegerLevels& LevelsInMemory(const PackedFormat& packed) {
  static const IntegerLevels floats = IntegersOf(LevelsOf({.layout = Layout::kFloats4}));
  static const IntegerLevels nf4 = IntegersOf(LevelsOf({.layout = Layout::kNf4}));
  return packed.layout == Layout::kFloats4 ? floats : nf4;
}

// Groups of kernels may be smaller than groups of the checkpoint. The scales are then repeated, so
// that each block of quantized activations has one.
GroupFormat FormatOf(const PackedFormat& packed) {
  GroupFormat format = {.codes = packed.bits == 4 ? Codes::k4 : Codes::k8,
                        .scaling = packed.zeros ? Scaling::kZeros : Scaling::kCentred,
                        .group = 128};
  while (packed.group % format.group != 0) format.group /= 2;
  if (!LevelsOf(packed).empty()) {
    format.codes = Codes::k4Table;
    format.table = LevelsInMemory(packed).integers;
  }
  return format;
}

}  // namespace

std::optional<GroupFormat> FormatOfPacked(const LinearTensors& linear) {
  if (linear.packed.empty()) return std::nullopt;
  const PackedTensors& first = *linear.packed.front();
  if (!first.format.has_groups()) return std::nullopt;
  const bool same_order = std::ranges::all_of(
      linear.packed, [&](const auto& part) { return part->order == first.order; });
  return same_order ? std::optional(FormatOf(first.format)) : std::nullopt;
}

std::vector<const PackedTensors*> PackedPartsOf(const ModelTensors& tensors) {
  std::vector<const PackedTensors*> parts;
  for (const LinearTensors* linear : LinearsOf(tensors)) {
    for (const auto& part : linear->packed) parts.push_back(part.get());
  }
  return parts;
}

std::vector<std::string> RoundingsOf(const ModelTensors& tensors) {
  std::set<std::string> roundings;
  for (const PackedTensors* part : PackedPartsOf(tensors)) {
    if (!part->format.has_groups()) {
      // bf16 has more digits than E4M3, which a power of two leaves alone.
      if (part->format.scale_type == PackedFormat::ScaleType::kPowers) continue;
      roundings.insert("FP8 weights, times their scales, to bf16: by at most 1/256");
      continue;
    }
    if (part->scales.dtype == DType::kF32 || part->nested) {
      roundings.insert("f32 scales to f16: by at most 1/2048");
    }
    if (LevelsOf(part->format).empty()) continue;
    const float error = LevelsInMemory(part->format).error;
    if (error == 0) continue;
    roundings.insert(fmt::format("the 16 levels of {} to int8: by {:.2g} of a group's largest",
                                 ShortName(part->format), error));
  }
  return {roundings.begin(), roundings.end()};
}

void ReadPacked(const PackedTensors& tensors, const PackedRows& rows, int64_t row,
                int64_t first_input, const GroupFormat& format, ops::GroupedRow& to,
                float& factor) {
  if (std::ssize(to.codes) == tensors.weight.shape[1]) {
    rows.ReadCodes(row, to.codes);
  } else {
    std::vector<uint8_t> codes(tensors.weight.shape[1]);
    rows.ReadCodes(row, codes);
    std::copy_n(codes.begin() + first_input, to.codes.size(), to.codes.begin());
  }
  const auto scales = rows.Scales(row);
  const auto zeros = rows.Zeros(row);
  const float unit = LevelsOf(tensors.format).empty() ? 1 : LevelsInMemory(tensors.format).unit;
  for (size_t i = 0; i < to.scales.size(); ++i) {
    const int64_t input = first_input + static_cast<int64_t>(i) * format.group;
    const auto group = static_cast<size_t>(input / rows.group());
    to.scales[i] = unit * scales[group];
    if (!zeros.empty()) to.zeros[i] = zeros[group];
  }
  factor = ops::FactorForF16(to.scales);
  for (float& scale : to.scales) {
    const float exact = scale / factor;
    constexpr float kMaxError = 0x1p-11f;
    if (std::fabs(ToFloat(ToF16(exact)) - exact) > kMaxError * std::fabs(exact)) {
      Throw(ErrorKind::kUnsupported,
            "tensor {}: the scales of output {}, such as {}, are too far apart for f16",
            tensors.scales.name, row, scale / unit);
    }
    scale = exact;
  }
  factor *= rows.factor();
}

}  // namespace godwit
