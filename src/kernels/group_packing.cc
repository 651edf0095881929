#include "kernels/group_packing.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace godwit::kernels {
namespace {

// Offsets of a column's numbers, in bytes from the start of a block. HalfAt: a group's first or
// second F16; ByteAt: the byte behind so many of a group's F16s; BlockHalfAt: the block's first or
// second F16.
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

uint32_t Quad(const uint8_t* codes) {
  uint32_t quad;
  std::memcpy(&quad, codes, sizeof(quad));
  return quad;
}

// The bits of four codes above their low four, at bit `first` of each byte.
uint32_t HighBits(uint32_t quad, int first) { return (quad >> 4 & 0x0f0f0f0f) << first; }

// Packs codes [RunInputs] of a column to their place in their first line.
void PackRun(Codes codes, const uint8_t* from, std::byte* to) {
  const auto put = [&](uint32_t word) {
    std::memcpy(to, &word, sizeof(word));
    to += kLineBytes;
  };
  if (codes == Codes::k8) return put(Quad(from));
  const int high_bits = BitsOf(codes) - 4;
  uint32_t high = 0;
  for (int64_t i = 0; i < RunInputs(codes); i += 8) {
    const uint32_t first = Quad(from + i), second = Quad(from + i + 4);
    put((first & 0x0f0f0f0f) | (second & 0x0f0f0f0f) << 4);
    const auto place = static_cast<int>(i / 4) * high_bits;
    high |= HighBits(first, place) | HighBits(second, place + high_bits);
  }
  if (high_bits > 0) put(high);
}

// The integer or table entry of a code, before the scale.
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
  const auto part = [&] { return static_cast<int8_t>(block[ByteAt(format, group, 0, column)]); };
  switch (format.scaling) {
    case Scaling::kCentred:
      return half(0) * Integer(format, code, 0);
    case Scaling::kZeros:
      return half(0) *
             Integer(format, code, static_cast<uint8_t>(block[ByteAt(format, group, 1, column)]));
    case Scaling::kMins:
      return half(0) * Integer(format, code, 0) + half(1);
    case Scaling::kNested:
      return block_half(0) * part() * Integer(format, code, 0);
    case Scaling::kNestedMins:
      return block_half(0) * part() * Integer(format, code, 0) -
             block_half(1) * static_cast<int8_t>(block[MinPartAt(format, group, column)]);
  }
  return 0;
}

}  // namespace

uint8_t CodeAt(const GroupFormat& format, const void* group, int64_t i, int64_t column) {
  const int64_t inputs = RunInputs(format.codes), quad = i % inputs / 4;
  const auto* run = static_cast<const uint8_t*>(group) +
                    i / inputs * RunLines(format.codes) * kLineBytes + column * 4 + i % 4;
  if (format.codes == Codes::k8) return *run;
  const int low = run[quad / 2 * kLineBytes] >> quad % 2 * 4 & 15;
  const int high_bits = BitsOf(format.codes) - 4;
  if (high_bits == 0) return static_cast<uint8_t>(low);
  const int high = run[inputs / 8 * kLineBytes] >> quad * high_bits & ((1 << high_bits) - 1);
  return static_cast<uint8_t>(high << 4 | low);
}

GroupedRow NewGroupedRow(const GroupFormat& format, int64_t inputs) {
  const auto groups = static_cast<size_t>(GroupCount(format, inputs));
  const Scaling scaling = format.scaling;
  const bool mins = scaling == Scaling::kMins || scaling == Scaling::kNestedMins;
  GroupedRow row;
  row.codes.resize(inputs);
  row.scales.resize(IsNested(scaling) ? static_cast<size_t>(BlockCount(format, inputs)) : groups);
  if (mins) row.mins.resize(row.scales.size());
  if (scaling == Scaling::kZeros) row.zeros.resize(groups);
  if (IsNested(scaling)) row.parts.resize(groups);
  if (scaling == Scaling::kNestedMins) row.min_parts.resize(groups);
  return row;
}

// Sizes are locals, which no written byte can change, so compilers do not compute them for each
// run.
void PackColumn(const GroupFormat& format, const GroupedRow& row, int64_t column, void* panel) {
  const auto inputs = static_cast<int64_t>(row.codes.size());
  const int64_t groups = GroupsOfBlock(format), run = RunInputs(format.codes);
  const int64_t blocks = BlockCount(format, inputs), block_bytes = BlockBytes(format);
  const int64_t group_bytes = GroupBytes(format), run_bytes = RunLines(format.codes) * kLineBytes;
  auto* block = static_cast<std::byte*>(panel);
  for (int64_t b = 0; b < blocks; ++b, block += block_bytes) {
    PackBlockNumbers(format, row, static_cast<size_t>(b), column, block);
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t g = b * groups + group, begin = g * format.group;
      if (begin >= inputs) break;
      PackNumbers(format, row, static_cast<size_t>(g), group, column, block);
      const int64_t end = std::min<int64_t>(inputs, begin + format.group);
      const uint8_t* from = row.codes.data() + begin;
      std::byte* to = block + group * group_bytes + column * 4;
      int64_t left = end - begin;
      for (; left >= run; left -= run, from += run, to += run_bytes) {
        PackRun(format.codes, from, to);
      }
      if (left == 0) continue;
      uint8_t codes[32] = {};
      std::copy_n(from, left, codes);
      PackRun(format.codes, codes, to);
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
