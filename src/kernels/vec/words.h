// Largest of integers in 256 bits, for AVX2 and whatever has it. Included by the other headers
// here.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace godwit::kernels {
namespace {

// The largest of 16 unsigned words.
inline __attribute__((always_inline)) int32_t LargestWord(__m256i words) {
  const __m128i x =
      _mm_max_epu16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  const __m128i least = _mm_minpos_epu16(_mm_xor_si128(x, _mm_set1_epi32(-1)));
  return 0xffff - (_mm_cvtsi128_si32(least) & 0xffff);
}

inline __attribute__((always_inline)) int32_t LargestInt(__m256i ints) {
  __m128i x = _mm_max_epi32(_mm256_castsi256_si128(ints), _mm256_extracti128_si256(ints, 1));
  x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}

}  // namespace
}  // namespace godwit::kernels
