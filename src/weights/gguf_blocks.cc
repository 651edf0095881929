#include "weights/gguf_blocks.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"
#include "weights/gguf_grids.h"

namespace godwit {
namespace {

constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};
// Twice the numbers of a float of 4 bits.
constexpr int8_t kMxfp4Levels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
// A digit of a grid (gguf_grids.h), and 8 more where the element is negative.
constexpr int8_t kIq2Levels[16] = {8, 25, 43, 0, 0, 0, 0, 0, -8, -25, -43};
constexpr int8_t kIq3XxsLevels[16] = {4,  12,  20,  28,  36,  44,  52,  62,
                                      -4, -12, -20, -28, -36, -44, -52, -62};
constexpr int8_t kIq3SLevels[16] = {1, 3, 5, 7, 9, 11, 13, 15, -1, -3, -5, -7, -9, -11, -13, -15};

unsigned Byte(const std::byte* bytes, int64_t i) { return std::to_integer<unsigned>(bytes[i]); }
unsigned Nibble(const std::byte* bytes, int64_t i, bool high) {
  return high ? Byte(bytes, i) >> 4 : Byte(bytes, i) & 15;
}
unsigned Half(const std::byte* bytes) { return Byte(bytes, 0) | Byte(bytes, 1) << 8; }
float HalfFloat(const std::byte* bytes) { return ToFloat(F16{static_cast<uint16_t>(Half(bytes))}); }
uint8_t Code(unsigned value) { return static_cast<uint8_t>(value); }

// Four-bit codes of `count` elements in runs of `run`: the low nibbles of run / 2 bytes, then their
// high ones.
void ReadNibbles(const std::byte* bytes, int64_t count, int64_t run, uint8_t* codes) {
  const int64_t half = run / 2;
  for (int64_t begin = 0; begin < count; begin += run, bytes += half, codes += run) {
    for (int64_t i = 0; i < half; ++i) {
      codes[i] = Code(Byte(bytes, i) & 15);
      codes[half + i] = Code(Byte(bytes, i) >> 4);
    }
  }
}

// Adds the fifth bits of 32 elements, eight at once: byte i of a word keeps bit i alone.
void AddFifthBits(const std::byte* bytes, uint8_t* codes) {
  static_assert(std::endian::native == std::endian::little);
  for (int64_t i = 0; i < 4; ++i, codes += 8) {
    const uint64_t bits = Byte(bytes, i) * 0x0101010101010101u & 0x8040201008040201u;
    const uint64_t any = (bits + 0x7f7f7f7f7f7f7f7fu) & 0x8080808080808080u;  // no byte overflows
    uint64_t eight;
    std::memcpy(&eight, codes, sizeof(eight));
    eight |= any >> 3;
    std::memcpy(codes, &eight, sizeof(eight));
  }
}

void DecodeQ8_0(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  // Two's complement becomes a code from -128 on.
  for (int64_t i = 0; i < 32; ++i) out.codes[i] = Code(Byte(block, 2 + i) ^ 128);
}

// Decodes Q4_0 and IQ4_NL.
void DecodeQ4_0(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  ReadNibbles(block + 2, 32, 32, out.codes.data());
}

void DecodeQ4_1(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  out.minimum = HalfFloat(block + 2);
  ReadNibbles(block + 4, 32, 32, out.codes.data());
}

void DecodeQ5_0(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  ReadNibbles(block + 6, 32, 32, out.codes.data());
  AddFifthBits(block + 2, out.codes.data());
}

void DecodeQ5_1(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  out.minimum = HalfFloat(block + 2);
  ReadNibbles(block + 8, 32, 32, out.codes.data());
  AddFifthBits(block + 4, out.codes.data());
}

// Decodes the scales of Q4_K and Q5_K: two halves, then 8 scales and 8 minimums of 6 bits. Groups 0
// to 3 have the lower bits of bytes 0 to 3 and 4 to 7. Groups 4 to 7 have the upper two bits of
// these bytes, and as lower four bits the nibbles of bytes 8 to 11.
void DecodeScalesK(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  out.minimum = HalfFloat(block + 2);
  const std::byte* bits = block + 4;
  for (int64_t g = 0; g < 4; ++g) {
    const auto at = static_cast<size_t>(g);
    out.scales[at] = static_cast<int8_t>(Byte(bits, g) & 63);
    out.minimums[at] = Code(Byte(bits, g + 4) & 63);
    out.scales[at + 4] =
        static_cast<int8_t>(Nibble(bits, g + 8, false) | (Byte(bits, g) >> 6) << 4);
    out.minimums[at + 4] = Code(Nibble(bits, g + 8, true) | (Byte(bits, g + 4) >> 6) << 4);
  }
}

void DecodeQ4_K(const std::byte* block, DecodedBlock& out) {
  DecodeScalesK(block, out);
  ReadNibbles(block + 16, 256, 64, out.codes.data());
}

void DecodeQ5_K(const std::byte* block, DecodedBlock& out) {
  DecodeScalesK(block, out);
  ReadNibbles(block + 48, 256, 64, out.codes.data());
  // Bit g of byte i belongs to element i of group g.
  for (int64_t i = 0; i < 256; ++i) {
    out.codes[i] |= Code((Byte(block, 16 + i % 32) >> (i / 32) & 1) << 4);
  }
}

void DecodeQ6_K(const std::byte* block, DecodedBlock& out) {
  ReadNibbles(block, 256, 128, out.codes.data());
  // In each half of the block, bits 2j and 2j + 1 of byte i are the upper ones of element 32j + i.
  for (int64_t i = 0; i < 256; ++i) {
    const unsigned bits = Byte(block, 128 + i / 128 * 32 + i % 32) >> (2 * (i % 128 / 32));
    out.codes[i] |= Code((bits & 3) << 4);
  }
  std::memcpy(out.scales.data(), block + 192, 16);
  out.scale = HalfFloat(block + 208);
}

void DecodeIq4_Xs(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  const unsigned high = Half(block + 2);
  for (int64_t g = 0; g < 8; ++g) {
    const unsigned low = Nibble(block + 4, g / 2, g % 2 != 0);
    const unsigned scale = low | (high >> (2 * g) & 3) << 4;
    out.scales[g] = static_cast<int8_t>(static_cast<int>(scale) - 32);
  }
  ReadNibbles(block + 8, 256, 32, out.codes.data());
}

void DecodeMxfp4(const std::byte* block, DecodedBlock& out) {
  out.scale = std::ldexp(1.0f, static_cast<int>(Byte(block, 0)) - 128);
  ReadNibbles(block + 1, 32, 32, out.codes.data());
}

// Two-bit codes of 256 elements: in each half of the block, bits 2j and 2j + 1 of byte i are those
// of element 32j + i.
void ReadPairs(const std::byte* bytes, uint8_t* codes) {
  for (int64_t i = 0; i < 256; ++i) {
    codes[i] = Code(Byte(bytes, i / 128 * 32 + i % 32) >> (2 * (i % 128 / 32)) & 3);
  }
}

void DecodeQ2_K(const std::byte* block, DecodedBlock& out) {
  for (int64_t g = 0; g < 16; ++g) {
    const auto at = static_cast<size_t>(g);
    out.scales[at] = static_cast<int8_t>(Nibble(block, g, false));
    out.minimums[at] = Code(Nibble(block, g, true));
  }
  ReadPairs(block + 16, out.codes.data());
  out.scale = HalfFloat(block + 80);
  out.minimum = HalfFloat(block + 82);
}

// Third bits lie in front, and 16 scales of 6 bits behind. The lower four bits of scales are
// nibbles of 8 bytes; their upper two follow, four in a byte.
void DecodeQ3_K(const std::byte* block, DecodedBlock& out) {
  ReadPairs(block + 32, out.codes.data());
  for (int64_t i = 0; i < 256; ++i) {
    out.codes[i] |= Code((Byte(block, i % 32) >> (i / 32) & 1) << 2);
  }
  for (int64_t g = 0; g < 16; ++g) {
    const unsigned low = Nibble(block + 96, g % 8, g >= 8);
    const unsigned high = Byte(block, 104 + g % 4) >> (2 * (g / 4)) & 3;
    out.scales[g] = static_cast<int8_t>(static_cast<int>(low | high << 4) - 32);
  }
  out.scale = HalfFloat(block + 108);
}

// The signs of 8 elements, of which 7 are stored: an even number is negative.
unsigned EvenSigns(unsigned seven) {
  return seven | static_cast<unsigned>(std::popcount(seven) & 1) << 7;
}

// The codes of 8 elements of IQ2, or 4 of IQ3, by an entry of their grid. Bit i of `signs`: element
// i is negative.
template <int kBits, int kElements>
void ReadEntry(unsigned entry, unsigned signs, uint8_t* codes) {
  constexpr unsigned kMask = (1u << kBits) - 1;
  for (int i = 0; i < kElements; ++i) {
    codes[i] = Code((entry >> (kBits * i) & kMask) | (signs >> i & 1) << 3);
  }
}

// A group's scale is 2s + 1 units.
int8_t OddScale(unsigned s) { return static_cast<int8_t>(2 * s + 1); }

uint32_t Word(const std::byte* bytes) { return Half(bytes) | Half(bytes + 2) << 16; }

// Each group of 32 has four places in the grid, and a word of 7 signs for each and a scale.
void DecodeIq2_Xxs(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  for (int64_t g = 0; g < 8; ++g) {
    const std::byte* const group = block + 2 + 8 * g;
    const uint32_t word = Word(group + 4);
    out.scales[g] = OddScale(word >> 28);
    for (int64_t i = 0; i < 4; ++i) {
      ReadEntry<2, 8>(kIq2XxsGrid[Byte(group, i)], EvenSigns(word >> (7 * i) & 127),
                      &out.codes[32 * g + 8 * i]);
    }
  }
}

// Every 8 elements have 9 bits of a place and 7 of signs. 16 scales follow as nibbles.
void DecodeIq2_Xs(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  for (int64_t i = 0; i < 32; ++i) {
    const unsigned half = Half(block + 2 + 2 * i);
    ReadEntry<2, 8>(kIq2XsGrid[half & 511], EvenSigns(half >> 9), &out.codes[8 * i]);
  }
  for (int64_t g = 0; g < 16; ++g) out.scales[g] = OddScale(Nibble(block + 66, g / 2, g % 2 != 0));
}

// Every 8 elements have a byte of their place, a byte of signs, and two upper bits of the place.
void DecodeIq2_S(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  for (int64_t i = 0; i < 32; ++i) {
    const unsigned high = Byte(block, 66 + i / 4) >> (2 * (i % 4)) & 3;
    ReadEntry<2, 8>(kIq2SGrid[Byte(block, 2 + i) | high << 8], Byte(block, 34 + i),
                    &out.codes[8 * i]);
  }
  for (int64_t g = 0; g < 16; ++g) out.scales[g] = OddScale(Nibble(block + 74, g / 2, g % 2 != 0));
}

// Every 4 elements have a byte of their place. Each group of 32 has a word of four times 7 signs
// and a scale.
void DecodeIq3_Xxs(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  for (int64_t g = 0; g < 8; ++g) {
    const uint32_t word = Word(block + 66 + 4 * g);
    out.scales[g] = OddScale(word >> 28);
    for (int64_t i = 0; i < 8; ++i) {
      const unsigned signs = EvenSigns(word >> (7 * (i / 2)) & 127) >> (4 * (i % 2));
      ReadEntry<3, 4>(kIq3XxsGrid[Byte(block, 2 + 8 * g + i)], signs, &out.codes[32 * g + 4 * i]);
    }
  }
}

// Every 4 elements have a byte of their place, its ninth bit, and four signs. 8 scales follow as
// nibbles.
void DecodeIq3_S(const std::byte* block, DecodedBlock& out) {
  out.scale = HalfFloat(block);
  for (int64_t i = 0; i < 64; ++i) {
    const unsigned ninth = Byte(block, 66 + i / 8) >> (i % 8) & 1;
    ReadEntry<3, 4>(kIq3SGrid[Byte(block, 2 + i) | ninth << 8],
                    Byte(block, 74 + i / 2) >> (4 * (i % 2)), &out.codes[4 * i]);
  }
  for (int64_t g = 0; g < 8; ++g) out.scales[g] = OddScale(Nibble(block + 106, g / 2, g % 2 != 0));
}

constexpr BlockFormat kFormats[] = {
    {"Q8_0", 32, 34, 8, 32, 128, nullptr, false, false, DecodeQ8_0},
    {"Q4_0", 32, 18, 4, 32, 8, nullptr, false, false, DecodeQ4_0},
    {"Q4_1", 32, 20, 4, 32, 0, nullptr, true, false, DecodeQ4_1},
    {"Q5_0", 32, 22, 5, 32, 16, nullptr, false, false, DecodeQ5_0},
    {"Q5_1", 32, 24, 5, 32, 0, nullptr, true, false, DecodeQ5_1},
    {"Q4_K", 256, 144, 4, 32, 0, nullptr, true, true, DecodeQ4_K},
    {"Q5_K", 256, 176, 5, 32, 0, nullptr, true, true, DecodeQ5_K},
    {"Q6_K", 256, 210, 6, 16, 32, nullptr, false, true, DecodeQ6_K},
    {"IQ4_NL", 32, 18, 4, 32, 0, kIq4Levels, false, false, DecodeQ4_0},
    {"IQ4_XS", 256, 136, 4, 32, 0, kIq4Levels, false, true, DecodeIq4_Xs},
    {"MXFP4", 32, 17, 4, 32, 0, kMxfp4Levels, false, false, DecodeMxfp4, 1, true},
    {"Q2_K", 256, 84, 2, 16, 0, nullptr, true, true, DecodeQ2_K},
    {"Q3_K", 256, 110, 3, 16, 4, nullptr, false, true, DecodeQ3_K},
    {"IQ2_XXS", 256, 66, 4, 32, 0, kIq2Levels, false, true, DecodeIq2_Xxs, 0.125f},
    {"IQ2_XS", 256, 74, 4, 16, 0, kIq2Levels, false, true, DecodeIq2_Xs, 0.125f},
    {"IQ2_S", 256, 82, 4, 16, 0, kIq2Levels, false, true, DecodeIq2_S, 0.125f},
    {"IQ3_XXS", 256, 98, 4, 32, 0, kIq3XxsLevels, false, true, DecodeIq3_Xxs, 0.25f},
    {"IQ3_S", 256, 110, 4, 32, 0, kIq3SLevels, false, true, DecodeIq3_S},
};

}  // namespace

std::span<const BlockFormat> AllBlockFormats() { return kFormats; }

const BlockFormat* FindBlockFormat(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &BlockFormat::name);
  return found == std::end(kFormats) ? nullptr : found;
}

void DecodeBlock(const BlockFormat& format, const std::byte* block, DecodedBlock& out) {
  format.decode(block, out);
}

void DequantizeRow(const BlockFormat& format, const std::byte* row, std::span<float> out) {
  assert(std::ssize(out) % format.elements == 0);
  DecodedBlock block;
  float* to = out.data();
  for (int64_t n = std::ssize(out) / format.elements; n > 0; --n, row += format.bytes) {
    DecodeBlock(format, row, block);
    const uint8_t* code = block.codes.data();
    for (int64_t g = 0; g < format.elements / format.group; ++g) {
      const auto at = static_cast<size_t>(g);
      float scale = format.unit * block.scale;
      float added = block.minimum;
      if (format.two_level) scale *= static_cast<float>(block.scales[at]);
      if (format.two_level && format.minimums) {
        added = -(block.minimum * static_cast<float>(block.minimums[at]));
      }
      for (int64_t i = 0; i < format.group; ++i) {
        const int value = format.levels != nullptr ? format.levels[code[i]] : code[i] - format.zero;
        const float product = scale * static_cast<float>(value);
        to[i] = format.minimums ? product + added : product;
      }
      code += format.group;
      to += format.group;
    }
  }
}

}  // namespace godwit
