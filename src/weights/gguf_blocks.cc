#include "weights/gguf_blocks.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "tensor/dtype.h"

namespace godwit {
namespace {

constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

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
      float scale = block.scale;
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
