// The product of int8 quads by VPDPBUSD, which multiplies four unsigned bytes by four signed ones
// and adds them to an int32, without saturation. Include after vec/avx512.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// sum + the products of unsigned and signed quads. With the intrinsic, GCC 12 keeps sums that were
// loaded in memory.
GODWIT_INLINE Vec AddQuadProducts(Vec unsigned_quads, Vec signed_quads, Vec sum) {
  __asm__("vpdpbusd %1, %2, %0" : "+v"(sum) : "v"(signed_quads), "v"(unsigned_quads));
  return sum;
}

// Signed rows by unsigned columns.
struct NativeQuadOperand : WordOperand<int8_t, uint8_t> {
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddQuadProducts(w, a, sum); }
};

// Unsigned rows by signed columns.
struct NativeWeightOperand : WordOperand<uint8_t, int8_t> {
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddQuadProducts(a, w, sum); }
};

}  // namespace
}  // namespace godwit::kernels
