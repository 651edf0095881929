// Weights of few bits: integer codes of neighbouring inputs, in groups that share a scale.
//
// Every 4-bit checkpoint is one of these, whatever format it came in, and so is what
// `--weights int4` makes. kernels/group_packing.h has the layout in memory.
#pragma once

#include <array>
#include <cstdint>

namespace godwit {

// The code that stands for one weight.
enum class Codes : uint8_t {
  k4,       // 0 to 15
  k4Table,  // 0 to 15, the place of an int8 in a table
  k5,       // 0 to 31; only in groups of 32 inputs or more
  k6,       // 0 to 63
  k8,       // 0 to 255
};

// The meaning of a code c, in a group of inputs of one output.
enum class Scaling : uint8_t {
  kCentred,     // scale * (c - centre), or scale * table[c]; the scale is an F16
  kZeros,       // scale * (c - zero), zero 0 to 255
  kMins,        // scale * c + min, both F16
  kNested,      // d * part * (c - centre): an F16 for the block, an int8 for the group
  kNestedMins,  // d * part * c - m * min_part, with two of each
};

struct GroupFormat {
  Codes codes = Codes::k4;
  Scaling scaling = Scaling::kCentred;
  int32_t group = 32;              // inputs: a power of two, from 16 to MaxGroup
  std::array<int8_t, 16> table{};  // of k4Table

  bool operator==(const GroupFormat&) const = default;
};

constexpr int BitsOf(Codes codes) {
  switch (codes) {
    case Codes::k4:
    case Codes::k4Table:
      return 4;
    case Codes::k5:
      return 5;
    case Codes::k6:
      return 6;
    case Codes::k8:
      return 8;
  }
  return 0;
}

// More inputs would leave the integers that f32 holds: 256 * 255 * 127 < 2^24.
inline constexpr int64_t kMaxGroup = 256;

constexpr bool IsNested(Scaling scaling) {
  return scaling == Scaling::kNested || scaling == Scaling::kNestedMins;
}

// Whether some source has such weights, alone or joined with others. Instruction sets have kernels
// for these alone: all pairs would take the compiler twice as long.
constexpr bool IsInUse(Codes codes, Scaling scaling) {
  switch (codes) {
    case Codes::k4:
      return scaling != Scaling::kNested;
    case Codes::k4Table:
      return scaling == Scaling::kCentred || scaling == Scaling::kNested;
    case Codes::k5:
      return scaling == Scaling::kCentred || scaling == Scaling::kMins ||
             scaling == Scaling::kNestedMins;
    case Codes::k6:
      return IsNested(scaling);
    case Codes::k8:
      return scaling == Scaling::kCentred || scaling == Scaling::kZeros;
  }
  return false;
}

// Inputs of the largest group with such a scaling.
constexpr int64_t MaxGroup(Scaling scaling) {
  return scaling == Scaling::kMins || IsNested(scaling) ? 32 : kMaxGroup;
}

constexpr int64_t MinGroup(Codes codes) { return codes == Codes::k5 ? 32 : 16; }

constexpr bool IsInUse(const GroupFormat& format) {
  return IsInUse(format.codes, format.scaling) && format.group >= MinGroup(format.codes) &&
         format.group <= MaxGroup(format.scaling);
}

// Groups come in blocks of so many inputs, the last one padded. The rows that such weights are
// multiplied with are quantized in blocks, too.
constexpr int64_t BlockInputs(const GroupFormat& format) {
  return IsNested(format.scaling) || format.group > 128 ? 256 : 128;
}
constexpr int64_t BlockCount(const GroupFormat& format, int64_t inputs) {
  return (inputs + BlockInputs(format) - 1) / BlockInputs(format);
}
constexpr int64_t GroupCount(const GroupFormat& format, int64_t inputs) {
  return (inputs + format.group - 1) / format.group;
}
constexpr int64_t GroupsOfBlock(const GroupFormat& format) {
  return BlockInputs(format) / format.group;
}

// The centre that is subtracted from codes, where it is the same for all.
constexpr int32_t Centre(const GroupFormat& format) {
  const bool centred = format.scaling == Scaling::kCentred || format.scaling == Scaling::kNested;
  if (!centred) return 0;
  return format.codes == Codes::k4Table ? 0 : 1 << (BitsOf(format.codes) - 1);
}

}  // namespace godwit
