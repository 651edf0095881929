// Conversions and products of small numbers, for kernels on both sides.
#pragma once

#include <bit>
#include <cstdint>

#include "cuda/kernels/block.h"
#include "tensor/dtype.h"

namespace godwit::cuda {

// The two bf16 numbers of a word, the first one in its low half.
GODWIT_DEVICE float LowBF16(uint32_t word) { return std::bit_cast<float>(word << 16); }
GODWIT_DEVICE float HighBF16(uint32_t word) { return std::bit_cast<float>(word & 0xffff0000u); }

// An IEEE half, widened exactly. A product with 2^112 turns the exponent's bias into that of f32
// and normalises small numbers.
GODWIT_DEVICE float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t rest = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  const uint32_t magnitude = rest >= 0x0f800000u
                                 ? rest | 0x7f800000u
                                 : std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  return std::bit_cast<float>(sign | magnitude);
}

inline constexpr float kLargestFloat = 0x1.fffffep127f;

// Rounds to an IEEE half, to nearest even; beyond the range to infinity.
GODWIT_DEVICE uint16_t FloatToHalf(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520, midway to the next power of two
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // 2^-14
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else {
    // 0.5 has steps of 2^-24, as have the smallest halves.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  }
  return static_cast<uint16_t>(sign | half);
}

// Element i of numbers in F32, F16 or BF16, widened.
GODWIT_DEVICE float ElementAt(DType dtype, const void* numbers, int64_t i) {
  if (dtype == DType::kF32) return static_cast<const float*>(numbers)[i];
  const uint16_t bits = static_cast<const uint16_t*>(numbers)[i];
  return dtype == DType::kF16 ? HalfToFloat(bits) : LowBF16(bits);
}

// sum plus the dot product of four unsigned, or signed, numbers with four signed ones. Exact.
GODWIT_DEVICE int32_t DotUnsigned(uint32_t unsigned_quad, uint32_t signed_quad, int32_t sum) {
#ifdef __CUDACC__
  int32_t result;
  asm("dp4a.u32.s32 %0, %1, %2, %3;"
      : "=r"(result)
      : "r"(unsigned_quad), "r"(signed_quad), "r"(sum));
  return result;
#else
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<int32_t>(unsigned_quad >> i & 255u) *
           static_cast<int8_t>(signed_quad >> i & 255u);
  }
  return sum;
#endif
}
GODWIT_DEVICE int32_t DotSigned(uint32_t a, uint32_t b, int32_t sum) {
#ifdef __CUDACC__
  return __dp4a(static_cast<int32_t>(a), static_cast<int32_t>(b), sum);
#else
  for (int i = 0; i < 32; i += 8) {
    sum += int32_t{static_cast<int8_t>(a >> i & 255u)} * static_cast<int8_t>(b >> i & 255u);
  }
  return sum;
#endif
}

}  // namespace godwit::cuda
