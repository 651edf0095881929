// The product of bf16 pairs by VDPBF16PS, which multiplies and adds both halves of a pair at once.
// It rounds after each, as its twin in pairs-inl.h does. The odd half comes first, and subnormals
// count as zero. Include after vec/avx512.h.
#pragma once

#include "kernels/gemm/pairs-inl.h"

namespace godwit::kernels {
namespace {

struct NativePairOperand : WordOperand<BF16, BF16> {
  // With the intrinsic, GCC 12 keeps sums that were loaded in memory.
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) {
    __asm__("vdpbf16ps %1, %2, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
  }
  static GODWIT_INLINE Vec StoreRounded(BF16* a, Vec x) {
    const __m256bh narrow = _mm512_cvtneps_pbh(x);
    __m256i bits;
    __builtin_memcpy(&bits, &narrow, sizeof(bits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(a), bits);
    return Widen(bits);
  }
};

}  // namespace
}  // namespace godwit::kernels
