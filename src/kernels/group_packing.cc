#include "kernels/group_packing.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace godwit::kernels {
namespace {

// Where numbers of a column lie, in bytes from the start of a block.
int64_t HalfAt(int64_t row, int64_t column) { return row * kHalvesBytes + 2 * column; }
int64_t ByteAt(const GroupFormat& format, int64_t group, int64_t column) {
  return SecondAt(format) + group * kPanelColumns + column;
}
int64_t MinPartAt(const GroupFormat& format, int64_t group, int64_t column) {
  return ByteAt(format, GroupsOfBlock(format), 0) + (group / 2 * kPanelColumns + column) * 2 +
         group % 2;
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

void PackGroup(const GroupFormat& format, const GroupedRow& row, size_t g, int64_t group,
               int64_t column, std::byte* block) {
  switch (format.scaling) {
    case Scaling::kZeros:
      block[ByteAt(format, group, column)] = static_cast<std::byte>(row.zeros[g]);
      [[fallthrough]];
    case Scaling::kCentred:
      return StoreF16(row.scales[g], block + HalfAt(group, column));
    case Scaling::kMins:
      StoreF16(row.mins[g], block + HalfAt(GroupsOfBlock(format) + group, column));
      return StoreF16(row.scales[g], block + HalfAt(group, column));
    case Scaling::kNestedMins:
      block[MinPartAt(format, group, column)] = static_cast<std::byte>(row.min_parts[g]);
      [[fallthrough]];
    case Scaling::kNested:
      block[ByteAt(format, group, column)] = static_cast<std::byte>(row.parts[g]);
      return;
  }
}

void PackHeader(const GroupFormat& format, const GroupedRow& row, int64_t b, int64_t column,
                std::byte* block) {
  if (IsNested(format.scaling)) {
    StoreF16(row.scales[static_cast<size_t>(b)], block + HalfAt(0, column));
    if (!row.mins.empty()) StoreF16(row.mins[static_cast<size_t>(b)], block + HalfAt(1, column));
  }
  const int64_t groups = GroupsOfBlock(format);
  const auto all = GroupCount(format, static_cast<int64_t>(row.codes.size()));
  for (int64_t group = 0; group < std::min(groups, all - b * groups); ++group) {
    PackGroup(format, row, static_cast<size_t>(b * groups + group), group, column, block);
  }
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
  const auto half = [&](int64_t row) { return LoadF16(block + HalfAt(row, column)); };
  const auto byte = [&](int64_t at) { return std::to_integer<uint8_t>(block[at]); };
  const int64_t at = ByteAt(format, group, column);
  switch (format.scaling) {
    case Scaling::kCentred:
      return half(group) * Integer(format, code, 0);
    case Scaling::kZeros:
      return half(group) * Integer(format, code, byte(at));
    case Scaling::kMins:
      return half(group) * Integer(format, code, 0) + half(GroupsOfBlock(format) + group);
    case Scaling::kNested:
      return half(0) * static_cast<int8_t>(byte(at)) * Integer(format, code, 0);
    case Scaling::kNestedMins:
      return half(0) * byte(at) * Integer(format, code, 0) -
             half(1) * byte(MinPartAt(format, group, column));
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
  auto* block = static_cast<std::byte*>(panel);
  for (int64_t b = 0; b < BlockCount(format, inputs); ++b, block += BlockBytes(format)) {
    PackHeader(format, row, b, column, block);
    const int64_t begin = b * BlockInputs(format);
    const int64_t end = std::min(inputs, begin + BlockInputs(format));
    std::byte* to = block + HeaderBytes(format) + column * 4;
    for (int64_t i = begin; i < end; i += LineInputs(format), to += kPanelColumns * 4) {
      const uint32_t word = Word(format, row.codes.data() + i, end - i);
      std::memcpy(to, &word, sizeof(word));
    }
  }
}

void UnpackColumn(const GroupFormat& format, const void* panel, int64_t column, int64_t inputs,
                  float* out) {
  const auto* bytes = static_cast<const std::byte*>(panel);
  for (int64_t i = 0; i < inputs; ++i) {
    const std::byte* block = bytes + i / BlockInputs(format) * BlockBytes(format);
    const int64_t in_block = i % BlockInputs(format);
    const uint8_t code = CodeAt(format, block + HeaderBytes(format), in_block, column);
    out[i] = WeightOf(format, block, in_block / format.group, column, code);
  }
}

}  // namespace godwit::kernels
