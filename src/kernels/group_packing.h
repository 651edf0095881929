// The packed layout of grouped weights (tensor/group_format.h), the same for every instruction set
// and for every source of such weights.
//
// A panel is one block after the other, as many as the inputs take, padded with zeros. A block has
// for every group its codes and then its numbers, each [.., kPanelColumns]:
//   kCentred      scale F16
//   kZeros        scale F16, zero U8
//   kMins         scale F16, min F16
//   kNested       part I8
//   kNestedMins   part I8
// and behind the groups numbers of its own:
//   kNested       d F16
//   kNestedMins   d F16, m F16, min parts I8 [groups / 2][column][2]
//
// A product reads memory in this order. With the numbers of all groups in front of the codes, which
// processors do not foresee, one row came at 0.55 of the speed.
//
// Codes of 8 bits lie as int8 weights do (packing.h), in quads of a column: [group / 4][column][4].
// With 4 bits, a byte holds two of neighbouring quads. Byte [i / 8][column][i % 4] has input i in
// its low half if i % 8 < 4, else in its high one. With 5 and 6 bits, there are so many of these
// lines, with the low halves, and then one with the other bits of all. Byte [column][i % 4] of that
// has those of its quads side by side, the first quad's lowest. All parts begin at multiples of 64
// bytes, as panels do.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/kernel_table.h"
#include "tensor/group_format.h"

namespace godwit::kernels {

// Bytes of the F16 of a group, or of a block.
inline constexpr int64_t kHalvesBytes = kPanelColumns * 2;

// Bytes of a line of codes: four of every column of a panel.
inline constexpr int64_t kLineBytes = kPanelColumns * 4;

// A run: inputs of a column whose codes lie in the same lines, and how many lines they take.
constexpr int64_t RunInputs(Codes codes) {
  switch (codes) {
    case Codes::k4:
    case Codes::k4Table:
      return 8;
    case Codes::k5:
      return 32;
    case Codes::k6:
      return 16;
    case Codes::k8:
      return 4;
  }
  return 0;
}
constexpr int64_t RunLines(Codes codes) { return RunInputs(codes) * BitsOf(codes) / 32; }

// Bytes of the codes of a group, of all of it, of the groups of a block, of a block, and of a
// panel.
constexpr int64_t CodeBytes(const GroupFormat& format) {
  return kPanelColumns * format.group * BitsOf(format.codes) / 8;
}
constexpr int64_t GroupBytes(const GroupFormat& format) {
  switch (format.scaling) {
    case Scaling::kCentred:
      return CodeBytes(format) + kHalvesBytes;
    case Scaling::kZeros:
      return CodeBytes(format) + kHalvesBytes + kPanelColumns;
    case Scaling::kMins:
      return CodeBytes(format) + 2 * kHalvesBytes;
    case Scaling::kNested:
    case Scaling::kNestedMins:
      return CodeBytes(format) + kPanelColumns;
  }
  return 0;
}
constexpr int64_t GroupsBytes(const GroupFormat& format) {
  return GroupsOfBlock(format) * GroupBytes(format);
}
constexpr int64_t BlockBytes(const GroupFormat& format) {
  switch (format.scaling) {
    case Scaling::kNested:
      return GroupsBytes(format) + kHalvesBytes;
    case Scaling::kNestedMins:
      return GroupsBytes(format) + 2 * kHalvesBytes + GroupsOfBlock(format) * kPanelColumns;
    default:
      return GroupsBytes(format);
  }
}
// Where in a block the numbers of a group begin, and where the min part of a column is.
constexpr int64_t NumbersAt(const GroupFormat& format, int64_t group) {
  return group * GroupBytes(format) + CodeBytes(format);
}
constexpr int64_t MinPartAt(const GroupFormat& format, int64_t group, int64_t column) {
  return GroupsBytes(format) + 2 * kHalvesBytes + (group / 2 * kPanelColumns + column) * 2 +
         group % 2;
}
constexpr int64_t GroupPanelBytes(const GroupFormat& format, int64_t inputs) {
  return BlockCount(format, inputs) * BlockBytes(format);
}

// The weights of one output, as they come from a source. The scaling decides which vectors there
// are.
struct GroupedRow {
  std::vector<uint8_t> codes;     // [inputs]
  std::vector<float> scales;      // [groups], of nested ones [blocks]: numbers of F16
  std::vector<float> mins;        // likewise
  std::vector<uint8_t> zeros;     // [groups]
  std::vector<int8_t> parts;      // [groups]
  std::vector<int8_t> min_parts;  // [groups]
};

// An empty row of a weight of so many inputs.
GroupedRow NewGroupedRow(const GroupFormat& format, int64_t inputs);

// The code of input i of a column, in the group that begins at `group`.
uint8_t CodeAt(const GroupFormat& format, const void* group, int64_t i, int64_t column);

// Column `column` of a zeroed panel of `format`, 64-byte aligned.
void PackColumn(const GroupFormat& format, const GroupedRow& row, int64_t column, void* panel);

// The weight of every input of a column, as f32: out [inputs]. Each is what the format says, in
// products and sums that are rounded one by one.
void UnpackColumn(const GroupFormat& format, const void* panel, int64_t column, int64_t inputs,
                  float* out);

}  // namespace godwit::kernels
