#include "base/rng.h"

#include <cassert>

namespace godwit {

std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

uint64_t RandomBits(uint64_t seed, uint64_t sequence, int64_t position, uint32_t draw) {
  assert(position >= 0 && position < int64_t{1} << 48 && draw < 1u << 16);
  const uint64_t place = static_cast<uint64_t>(position) << 16 | draw;
  const auto block =
      Philox4x32({static_cast<uint32_t>(place), static_cast<uint32_t>(place >> 32),
                  static_cast<uint32_t>(sequence), static_cast<uint32_t>(sequence >> 32)},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  return uint64_t{block[1]} << 32 | block[0];
}

double Uniform(uint64_t seed, uint64_t sequence, int64_t position, uint32_t draw) {
  return static_cast<double>(RandomBits(seed, sequence, position, draw) >> 11) * 0x1p-53;
}

}  // namespace godwit
