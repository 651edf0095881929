// The quantized element types of GGUF: rows of blocks, each of integer codes and their scales and
// minimums. It has facts about the formats, and readers of blocks: DecodeBlock gives codes,
// DequantizeRow numbers.
//
// Pure functions, thread-safe. All bytes are little-endian and may lie at any alignment.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace godwit {

inline constexpr int64_t kLongestBlock = 256;  // elements

struct DecodedBlock;

struct BlockFormat {
  std::string_view name;  // as GGUF spells it: "Q4_K"
  int64_t elements;       // of a block, which never crosses the end of a row
  int64_t bytes;
  int bits;       // of a code
  int64_t group;  // elements that share a scale and a minimum
  // The numbers that codes stand for: levels[code], where there is a table of 16, or code - zero.
  int zero;
  const int8_t* levels;
  bool minimums;  // something is added to every element
  // The scale and the minimum of a group are the block's times an integer of the group's.
  bool two_level;
  void (*decode)(const std::byte* block, DecodedBlock& out);
  // A power of two: the scale is the block's times this.
  float unit = 1;
  bool wide_scales = false;  // any power of two that f32 holds; else scales are F16s
};

// Element i of group g is
//   one level:   unit * scale * value(codes[i]) + minimum
//   two levels:  (unit * scale * scales[g]) * value(codes[i]) - minimum * minimums[g]
// in f32, in this order. A format without minimums adds nothing.
struct DecodedBlock {
  std::array<uint8_t, kLongestBlock> codes;
  float scale = 0;
  float minimum = 0;
  std::array<int8_t, 16> scales;
  std::array<uint8_t, 16> minimums;
};

// nullptr: no such format, or one that is not built.
const BlockFormat* FindBlockFormat(std::string_view name);

// Every format that is built.
std::span<const BlockFormat> AllBlockFormats();

// block: format.bytes. Sets of `out` what the format has.
void DecodeBlock(const BlockFormat& format, const std::byte* block, DecodedBlock& out);

// row: out.size() / elements blocks; out.size() must be a multiple of format.elements. The bits are
// those of gguf's reference in Python.
void DequantizeRow(const BlockFormat& format, const std::byte* row, std::span<float> out);

}  // namespace godwit
