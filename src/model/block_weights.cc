#include "model/block_weights.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "weights/tensor_rows.h"

namespace godwit {
namespace {

// What blocks of different types have in common, where they have.
constexpr GroupFormat kScalesOfScales = {
    .codes = Codes::k8, .scaling = Scaling::kNestedMins, .group = 16};
constexpr GroupFormat kScales = {.codes = Codes::k8, .scaling = Scaling::kCentred, .group = 32};

GroupFormat FormatOf(const BlockFormat& blocks) {
  GroupFormat format = {.codes = blocks.bits > 4 ? Codes::k8 : Codes::k4,
                        .scaling = blocks.two_level
                                       ? blocks.minimums ? Scaling::kNestedMins : Scaling::kNested
                                   : blocks.minimums ? Scaling::kMins
                                                     : Scaling::kCentred,
                        .group = static_cast<int32_t>(blocks.group)};
  if (blocks.levels != nullptr) {
    format.codes = Codes::k4Table;
    std::copy_n(blocks.levels, format.table.size(), format.table.begin());
  }
  return format;
}

// One block, at input `first` of a row.
class BlockReader {
 public:
  BlockReader(const BlockFormat& blocks, const GroupFormat& format, kernels::GroupedRow& to)
      : blocks_(blocks), format_(format), natural_(FormatOf(blocks) == format), to_(to) {}

  // Whether the block's scale or minimum is no number.
  bool Read(const std::byte* bytes, int64_t first) {
    DecodeBlock(blocks_, bytes, block_);
    const auto index = static_cast<size_t>(first / blocks_.elements);
    to_.scales[index] = block_.scale;
    if (!to_.mins.empty()) to_.mins[index] = blocks_.minimums ? block_.minimum : 32 * block_.scale;
    if (blocks_.two_level) ReadParts(first / format_.group);
    ReadCodes(first);
    return std::isnan(block_.scale) || (blocks_.minimums && std::isnan(block_.minimum));
  }

 private:
  bool FormerlySigned() const { return blocks_.two_level && !natural_ && !blocks_.minimums; }
  int Part(int64_t i) const {  // of the group of element i of the block
    return block_.scales[static_cast<size_t>(i / blocks_.group)];
  }

  void ReadParts(int64_t first_group) {
    for (int64_t i = 0; i < blocks_.elements; i += format_.group) {
      const auto group = static_cast<size_t>(first_group + i / format_.group);
      to_.parts[group] = static_cast<int16_t>(FormerlySigned() ? std::abs(Part(i)) : Part(i));
      if (to_.min_parts.empty()) continue;
      to_.min_parts[group] = blocks_.minimums
                                 ? block_.minimums[static_cast<size_t>(i / blocks_.group)]
                                 : static_cast<uint8_t>(to_.parts[group]);
    }
  }

  void ReadCodes(int64_t first) {
    uint8_t* codes = to_.codes.data() + first;
    // Codes of other types stand for code - zero, or levels[code]; those of 8 bits that are centred
    // for code - 128.
    const int shift = Centre(format_) == 128 ? 128 - blocks_.zero : 0;
    for (int64_t i = 0; i < blocks_.elements; ++i) {
      const uint8_t code = block_.codes[static_cast<size_t>(i)];
      int value = code + shift;
      if (FormerlySigned()) {
        // part * (code - zero) = |part| * value - |part| * 32, by the minimum of 32 scales.
        value = Part(i) < 0 ? 32 + blocks_.zero - code : 32 - blocks_.zero + code;
      } else if (format_.codes == Codes::k8 && blocks_.levels != nullptr) {
        value = blocks_.levels[code] + 128;
      }
      codes[i] = static_cast<uint8_t>(value);
    }
  }

  const BlockFormat& blocks_;
  const GroupFormat& format_;
  const bool natural_;  // the format is that of the blocks' own type
  kernels::GroupedRow& to_;
  DecodedBlock block_;
};

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
  if (scales_of_scales) return kScalesOfScales;
  if (scales) return kScales;
  return std::nullopt;
}

bool ReadBlocks(const TensorInfo& tensor, int64_t row, const GroupFormat& format,
                kernels::GroupedRow& to, float& factor) {
  const BlockFormat& blocks = *tensor.blocks;
  const std::byte* bytes = RowBytes(tensor, row);
  BlockReader reader(blocks, format, to);
  bool nan = false;
  for (int64_t i = 0; i < std::ssize(to.codes); i += blocks.elements, bytes += blocks.bytes) {
    nan |= reader.Read(bytes, i);
  }
  constexpr float kLargestF16 = 65504, kMinimum = 32;  // scales, of which a minimum is made
  const auto too_large = [](float x) { return std::isfinite(x) && std::abs(x) > kLargestF16; };
  if (std::ranges::any_of(to.mins, too_large)) {
    factor = kMinimum;
    for (std::vector<float>* numbers : {&to.scales, &to.mins}) {
      for (float& x : *numbers) x /= kMinimum;
    }
  }
  return nan;
}

}  // namespace godwit
