// Largest of the sums of 16 bits, for AVX2 and whatever has it. Included by the other headers here.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace godwit::kernels {
namespace {

// 16 keys in each of four vectors, unsigned.
struct WordSums {
  __m256i of[4];
};

inline __attribute__((always_inline)) int32_t LargestSum(const WordSums& sums) {
  const __m256i x = _mm256_max_epu16(_mm256_max_epu16(sums.of[0], sums.of[1]),
                                     _mm256_max_epu16(sums.of[2], sums.of[3]));
  const __m128i y = _mm_max_epu16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i least = _mm_minpos_epu16(_mm_xor_si128(y, _mm_set1_epi32(-1)));
  return 0xffff - (_mm_cvtsi128_si32(least) & 0xffff);
}

// Of factor * sums + fine, all below 2^15 but their result.
inline __attribute__((always_inline)) int32_t LargestSum(const WordSums& sums, int16_t factor,
                                                         const WordSums& fine) {
  const __m256i factors = _mm256_set1_epi32(factor << 16 | 1);
  __m256i largest = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i) {
    const __m256i low = _mm256_unpacklo_epi16(fine.of[i], sums.of[i]);
    const __m256i high = _mm256_unpackhi_epi16(fine.of[i], sums.of[i]);
    largest = _mm256_max_epi32(largest, _mm256_max_epi32(_mm256_madd_epi16(low, factors),
                                                         _mm256_madd_epi16(high, factors)));
  }
  __m128i x = _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  x = _mm_max_epi32(x, _mm_shuffle_epi32(x, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(x, _mm_shuffle_epi32(x, 0xb1)));
}

}  // namespace
}  // namespace godwit::kernels
