#include "model/block_weights.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <span>

#include "weights/tensor_rows.h"

namespace godwit {
namespace {

Codes CodesOf(int bits) {
  for (const Codes codes : {Codes::k4, Codes::k5, Codes::k6}) {
    if (bits <= BitsOf(codes)) return codes;
  }
  return Codes::k8;
}

GroupFormat FormatOf(const BlockFormat& blocks) {
  GroupFormat format = {.codes = CodesOf(blocks.bits),
                        .scaling = blocks.two_level
                                       ? blocks.minimums ? Scaling::kNestedMins : Scaling::kNested
                                   : blocks.minimums ? Scaling::kMins
                                                     : Scaling::kCentred,
                        .group = static_cast<int32_t>(blocks.group)};
  if (blocks.levels != nullptr) {
    format.codes = Codes::k4Table;
    std::copy_n(blocks.levels, format.table.size(), format.table.begin());
  } else if (!IsInUse(format)) {  // Q3_K: its few codes fit into a table
    assert(blocks.bits < 4);
    format.codes = Codes::k4Table;
    for (int code = 0; code < 16; ++code) {
      format.table[static_cast<size_t>(code)] = static_cast<int8_t>(code - blocks.zero);
    }
  }
  return format;
}

// The format of blocks of several types: the longest code and the smallest group. All have scales
// of scales, or none has. Levels of a table take 8 bits.
GroupFormat JointFormat(std::span<const TensorInfo* const> parts) {
  const bool two_level = parts.front()->blocks->two_level;
  GroupFormat joint{.scaling = two_level ? Scaling::kNestedMins : Scaling::kCentred,
                    .group = kMaxGroup};
  for (const TensorInfo* part : parts) {
    const BlockFormat& blocks = *part->blocks;
    joint.codes = std::max(joint.codes, CodesOf(blocks.levels != nullptr ? 8 : blocks.bits));
    joint.group = std::min(joint.group, static_cast<int32_t>(blocks.group));
  }
  if (joint.group < MinGroup(joint.codes)) joint.codes = Codes::k6;
  return joint;
}

// Reads a block at input `first` of a row.
class BlockReader {
 public:
  BlockReader(const BlockFormat& blocks, const GroupFormat& format, ops::GroupedRow& to)
      : blocks_(blocks), format_(format), to_(to) {}

  // Returns whether the block's scale or minimum is NaN.
  bool Read(const std::byte* bytes, int64_t first) {
    DecodeBlock(blocks_, bytes, block_);
    const auto index = static_cast<size_t>(first / blocks_.elements);
    to_.scales[index] = block_.scale;
    // Codes with a minimum stand for themselves. Codes of other types stand for code - zero.
    if (!to_.mins.empty()) {
      to_.mins[index] =
          blocks_.minimums ? block_.minimum : static_cast<float>(blocks_.zero) * block_.scale;
    }
    if (blocks_.two_level) ReadParts(first / format_.group);
    ReadCodes(first);
    return std::isnan(block_.scale) || (blocks_.minimums && std::isnan(block_.minimum));
  }

 private:
  void ReadParts(int64_t first_group) {
    for (int64_t i = 0; i < blocks_.elements; i += format_.group) {
      const auto to = static_cast<size_t>(first_group + i / format_.group);
      const auto from = static_cast<size_t>(i / blocks_.group);
      to_.parts[to] = block_.scales[from];
      if (to_.min_parts.empty()) continue;
      to_.min_parts[to] =
          blocks_.minimums ? static_cast<int8_t>(block_.minimums[from]) : block_.scales[from];
    }
  }

  // Only loops over local variables, which a written byte cannot change, are vectorised.
  void ReadCodes(int64_t first) {
    const uint8_t* from = block_.codes.data();
    uint8_t* to = to_.codes.data() + first;
    const int64_t elements = blocks_.elements;
    const int centre = Centre(format_);
    if (const int8_t* levels = blocks_.levels; levels != nullptr && format_.codes == Codes::k8) {
      for (int64_t i = 0; i < elements; ++i) to[i] = static_cast<uint8_t>(levels[from[i]] + centre);
      return;
    }
    const bool centred =
        centre != 0;  // other codes stand for themselves, or for a place in a table
    const auto shift = static_cast<uint8_t>(centred ? centre - blocks_.zero : 0);
    for (int64_t i = 0; i < elements; ++i) to[i] = static_cast<uint8_t>(from[i] + shift);
  }

  const BlockFormat& blocks_;
  const GroupFormat& format_;
  ops::GroupedRow& to_;
  DecodedBlock block_;
};

// The number of which an output's scales are multiples. Scales with an exponent of 8 bits are first
// brought into the range of F16. Those below 2^-38 of the largest become 0.
float FactorOf(const BlockFormat& blocks, std::span<float> scales) {
  if (!blocks.wide_scales) return blocks.unit;
  const float factor = ops::FactorForF16(scales);
  for (float& scale : scales) scale /= factor;
  return blocks.unit * factor;
}

}  // namespace

std::optional<GroupFormat> FormatOfBlocks(const LinearTensors& linear) {
  bool same = true, scales_of_scales = true, scales = true;
  for (const TensorInfo* part : linear.parts) {
    const BlockFormat* blocks = part->blocks;
    if (blocks == nullptr) return std::nullopt;
    same = same && blocks == linear.parts.front()->blocks;
    scales_of_scales = scales_of_scales && blocks->two_level && blocks->levels == nullptr;
    scales = scales && !blocks->two_level && !blocks->minimums;
  }
  if (linear.parts.empty()) return std::nullopt;
  if (same) return FormatOf(*linear.parts.front()->blocks);
  if (scales_of_scales || scales) return JointFormat(linear.parts);
  return std::nullopt;
}

bool ReadBlocks(const TensorInfo& tensor, int64_t row, int64_t first_input,
                const GroupFormat& format, ops::GroupedRow& to, float& factor) {
  const BlockFormat& blocks = *tensor.blocks;
  assert(first_input % blocks.elements == 0);
  const std::byte* bytes = RowBytes(tensor, row) + first_input / blocks.elements * blocks.bytes;
  BlockReader reader(blocks, format, to);
  bool nan = false;
  for (int64_t i = 0; i < std::ssize(to.codes); i += blocks.elements, bytes += blocks.bytes) {
    nan |= reader.Read(bytes, i);
  }
  factor = FactorOf(blocks, to.scales);
  constexpr float kMinimum = 32;  // a minimum is made of this many scales
  const auto too_large = [](float x) { return std::isfinite(x) && std::abs(x) > kLargestF16; };
  if (std::ranges::any_of(to.mins, too_large)) {
    factor *= kMinimum;
    for (std::vector<float>* numbers : {&to.scales, &to.mins}) {
      for (float& x : *numbers) x /= kMinimum;
    }
  }
  return nan;
}

}  // namespace godwit
