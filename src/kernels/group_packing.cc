#include "kernels/group_packing.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace godwit::kernels {
namespace {

// Where numbers of a column lie, in bytes from the start of a block: of a group the first or second
// F16, and the byte behind so many of them; likewise of the block.
int64_t HalfAt(const GroupFormat& format, int64_t group, int64_t place, int64_t column) {
  return NumbersAt(format, group) + place * kHalvesBytes + 2 * column;
}
int64_t ByteAt(const GroupFormat& format, int64_t group, int64_t halves, int64_t column) {
  return NumbersAt(format, group) + halves * kHalvesBytes + column;
}
int64_t BlockHalfAt(const GroupFormat& format, int64_t place, int64_t column) {
  return GroupsBytes(format) + place * kHalvesBytes + 2 * column;
}

void StoreF16(float x, std::byte* to) {
  const F16 narrow = ToF16(x);
  std::memcpy(to, &narrow, sizeof(narrow));
}

float LoadF16(const std::byte* from) {
  F16 narrow;
  std::memcpy(&narrow, from, sizeof(narrow));
  return ToFloat(narrow);
}

void PackNumbers(const GroupFormat& format, const GroupedRow& row, size_t g, int64_t group,
                 int64_t column, std::byte* block) {
  switch (format.scaling) {
    case Scaling::kZeros:
      block[ByteAt(format, group, 1, column)] = static_cast<std::byte>(row.zeros[g]);
      [[fallthrough]];
    case Scaling::kCentred:
      return StoreF16(row.scales[g], block + HalfAt(format, group, 0, column));
    case Scaling::kMins:
      StoreF16(row.mins[g], block + HalfAt(format, group, 1, column));
      return StoreF16(row.scales[g], block + HalfAt(format, group, 0, column));
    case Scaling::kNestedMins:
      block[MinPartAt(format, group, column)] = static_cast<std::byte>(row.min_parts[g]);
      [[fallthrough]];
    case Scaling::kNested:
      block[ByteAt(format, group, 0, column)] = static_cast<std::byte>(row.parts[g]);
      return;
  }
}

void PackBlockNumbers(const GroupFormat& format, const GroupedRow& row, size_t b, int64_t column,
                      std::byte* block) {
  if (!IsNested(format.scaling)) return;
  StoreF16(row.scales[b], block + BlockHalfAt(format, 0, column));
  if (!row.mins.empty()) StoreF16(row.mins[b], block + BlockHalfAt(format, 1, column));
}

// Inputs side by side in a column of a line of codes.
int64_t LineInputs(const GroupFormat& format) { return 32 / BitsOf(format.codes); }

// A line's four bytes of a column.
uint32_t Word(const GroupFormat& format, const uint8_t* codes, int64_t n) {
  uint8_t line[8] = {};
  std::copy_n(codes, std::min<int64_t>(n, LineInputs(format)), line);
  uint32_t low, high;
  std::memcpy(&low, line, sizeof(low));
  std::memcpy(&high, line + 4, sizeof(high));
  return BitsOf(format.codes) == 8 ? low : low | high << 4;
}

uint8_t CodeAt(const GroupFormat& format, const std::byte* codes, int64_t i, int64_t column) {
  const int64_t line = LineInputs(format);
  const int64_t in_line = i % line;
  const auto byte =
      std::to_integer<uint8_t>(codes[(i / line * kPanelColumns + column) * 4 + in_line % 4]);
  if (BitsOf(format.codes) == 8) return byte;
  return in_line < 4 ? byte & 15 : byte >> 4;
}

// What the code stands for before it is scaled.
float Integer(const GroupFormat& format, uint8_t code, uint8_t zero) {
  if (format.codes == Codes::k4Table) return format.table[code];
  return static_cast<float>(code - Centre(format) - zero);
}

float WeightOf(const GroupFormat& format, const std::byte* block, int64_t group, int64_t column,
               uint8_t code) {
  const auto half = [&](int64_t place) {
    return LoadF16(block + HalfAt(format, group, place, column));
  };
  const auto block_half = [&](int64_t place) {
    return LoadF16(block + BlockHalfAt(format, place, column));
  };
  const auto byte = [&](int64_t at) { return std::to_integer<uint8_t>(block[at]); };
  const auto part = [&](int64_t halves) { return byte(ByteAt(format, group, halves, column)); };
  switch (format.scaling) {
    case Scaling::kCentred:
      return half(0) * Integer(format, code, 0);
    case Scaling::kZeros:
      return half(0) * Integer(format, code, part(1));
    case Scaling::kMins:
      return half(0) * Integer(format, code, 0) + half(1);
    case Scaling::kNested:
      return block_half(0) * static_cast<int8_t>(part(0)) * Integer(format, code, 0);
    case Scaling::kNestedMins:
      return block_half(0) * part(0) * Integer(format, code, 0) -
             block_half(1) * byte(MinPartAt(format, group, column));
  }
  return 0;
}

}  // namespace

GroupedRow NewGroupedRow(const GroupFormat& format, int64_t inputs) {
  const auto groups = static_cast<size_t>(GroupCount(format, inputs));
  const Scaling scaling = format.scaling;
  const bool mins = scaling == Scaling::kMins || scaling == Scaling::kNestedMins;
  GroupedRow row;
  row.codes.resize(static_cast<size_t>(inputs));
  row.scales.resize(IsNested(scaling) ? static_cast<size_t>(BlockCount(format, inputs)) : groups);
  if (mins) row.mins.resize(row.scales.size());
  if (scaling == Scaling::kZeros) row.zeros.resize(groups);
  if (IsNested(scaling)) row.parts.resize(groups);
  if (scaling == Scaling::kNestedMins) row.min_parts.resize(groups);
  return row;
}

void PackColumn(const GroupFormat& format, const GroupedRow& row, int64_t column, void* panel) {
  const auto inputs = static_cast<int64_t>(row.codes.size());
  const int64_t groups = GroupsOfBlock(format), line = LineInputs(format);
  auto* block = static_cast<std::byte*>(panel);
  for (int64_t b = 0; b < BlockCount(format, inputs); ++b, block += BlockBytes(format)) {
    PackBlockNumbers(format, row, static_cast<size_t>(b), column, block);
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t g = b * groups + group, begin = g * format.group;
      if (begin >= inputs) break;
      PackNumbers(format, row, static_cast<size_t>(g), group, column, block);
      const int64_t end = std::min<int64_t>(inputs, begin + format.group);
      std::byte* to = block + group * GroupBytes(format) + column * 4;
      for (int64_t i = begin; i < end; i += line, to += kPanelColumns * 4) {
        const uint32_t word = Word(format, row.codes.data() + i, end - i);
        std::memcpy(to, &word, sizeof(word));
      }
    }
  }
}

void UnpackColumn(const GroupFormat& format, const void* panel, int64_t column, int64_t inputs,
                  float* out) {
  const auto* bytes = static_cast<const std::byte*>(panel);
  for (int64_t i = 0; i < inputs; ++i) {
    const std::byte* block = bytes + i / BlockInputs(format) * BlockBytes(format);
    const int64_t group = i % BlockInputs(format) / format.group;
    const uint8_t code =
        CodeAt(format, block + group * GroupBytes(format), i % format.group, column);
    out[i] = WeightOf(format, block, group, column, code);
  }
}

}  // namespace godwit::kernels
