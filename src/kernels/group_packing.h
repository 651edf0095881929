// The packed layout of grouped weights (tensor/group_format.h), the same for every instruction set
// and for every source of such weights.
//
// A panel is one block after the other, as many as the inputs take, padded with zeros. Of a block,
// in this order, each [.., kPanelColumns]:
//   kCentred      scales F16 [groups]
//   kZeros        scales F16 [groups], zeros U8 [groups]
//   kMins         scales F16 [groups], mins F16 [groups]
//   kNested       d F16, parts I8 [groups]
//   kNestedMins   d F16, m F16, parts U8 [groups], min parts U8 [groups / 2][column][2]
// and the codes of one group after the other.
// Codes of 8 bits lie as int8 weights do (packing.h), in quads of a column: [group / 4][column][4].
// Of 4 bits, a byte holds two of neighbouring quads: byte [i / 8][column][i % 4] has input i in its
// low half if i % 8 < 4, else in its high one.
// All parts begin at multiples of 64 bytes, as panels do.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernel_table.h"
#include "tensor/group_format.h"

namespace godwit::kernels {

// Bytes of the F16 of a group, or of a block.
inline constexpr int64_t kHalvesBytes = kPanelColumns * 2;

// Bytes of a block before what is second there: the zeros, mins or parts.
constexpr int64_t SecondAt(const GroupFormat& format) {
  if (!IsNested(format.scaling)) return GroupsOfBlock(format) * kHalvesBytes;
  return (format.scaling == Scaling::kNested ? 1 : 2) * kHalvesBytes;
}
// Bytes of a block before the codes, of the codes of a group, of a block, and of a panel.
constexpr int64_t HeaderBytes(const GroupFormat& format) {
  const int64_t groups = GroupsOfBlock(format);
  switch (format.scaling) {
    case Scaling::kCentred:
      return SecondAt(format);
    case Scaling::kZeros:
    case Scaling::kNested:
      return SecondAt(format) + groups * kPanelColumns;
    case Scaling::kMins:
    case Scaling::kNestedMins:
      return SecondAt(format) + 2 * groups * kPanelColumns;
  }
  return 0;
}
constexpr int64_t CodeBytes(const GroupFormat& format) {
  return kPanelColumns * format.group * BitsOf(format.codes) / 8;
}
constexpr int64_t BlockBytes(const GroupFormat& format) {
  return HeaderBytes(format) + GroupsOfBlock(format) * CodeBytes(format);
}
constexpr int64_t GroupPanelBytes(const GroupFormat& format, int64_t inputs) {
  return BlockCount(format, inputs) * BlockBytes(format);
}

// The weights of one output, as they come from a source. Which vectors there are is up to the
// scaling.
struct GroupedRow {
  std::vector<uint8_t> codes;      // [inputs]
  std::vector<float> scales;       // [groups], of nested ones [blocks]: numbers of F16
  std::vector<float> mins;         // likewise
  std::vector<uint8_t> zeros;      // [groups]
  std::vector<int16_t> parts;      // [groups]
  std::vector<uint8_t> min_parts;  // [groups]
};

// An empty row of a weight of so many inputs.
GroupedRow NewGroupedRow(const GroupFormat& format, int64_t inputs);

// Column `column` of a zeroed panel of `format`, 64-byte aligned.
void PackColumn(const GroupFormat& format, const GroupedRow& row, int64_t column, void* panel);

// The weight of every input of a column, as f32: out [inputs]. Each is what the format says, in
// products and sums that are rounded one by one.
void UnpackColumn(const GroupFormat& format, const void* panel, int64_t column, int64_t inputs,
                  float* out);

}  // namespace godwit::kernels
