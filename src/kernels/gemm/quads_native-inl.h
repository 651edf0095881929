// The product of int8 quads by VPDPBUSD or USDOT. It multiplies four unsigned bytes by four signed
// ones and adds them to an int32, without saturation. Include after vec/avx512.h or vec/neon.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// Signed rows by unsigned columns.
struct NativeQuadOperand : WordOperand<int8_t, uint8_t> {
  static constexpr int32_t kExcess = 128;
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddQuadProducts(w, a, sum); }
};

// Unsigned rows by signed columns.
struct NativeWeightOperand : WordOperand<uint8_t, int8_t> {
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddQuadProducts(a, w, sum); }
};

}  // namespace
}  // namespace godwit::kernels
