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

template <class T>
GODWIT_INLINE Vec BroadcastQuad(const T* a) {
  float quad;
  __builtin_memcpy(&quad, a, sizeof(quad));
  return Set1(quad);
}

// Signed rows by unsigned columns.
struct NativeQuadOperand : RowsInPlace<int8_t> {
  using W = uint8_t;
  static constexpr int64_t kDepth = kQuad;
  static constexpr int kPhases = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const int8_t* a) {
    return BroadcastQuad(a);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w) {
    return Load(reinterpret_cast<const float*>(w));
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddQuadProducts(w, a, sum); }
};

// Unsigned rows by signed columns.
struct NativeWeightOperand : RowsInPlace<uint8_t> {
  using W = int8_t;
  static constexpr int64_t kDepth = kQuad;
  static constexpr int kPhases = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const uint8_t* a) {
    return BroadcastQuad(a);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const int8_t* w) {
    return Load(reinterpret_cast<const float*>(w));
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddQuadProducts(a, w, sum); }
};

}  // namespace
}  // namespace godwit::kernels
