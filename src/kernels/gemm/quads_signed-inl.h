// The product of int8 quads by SDOT, which multiplies signed bytes by signed ones. Unsigned bytes
// of a panel lose their 128 as they go by, at an instruction for each vector. No row then has a sum
// to take off. Include after vec/neon.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

struct SignedQuadOperand : WordOperand<int8_t, uint8_t> {
  static constexpr int32_t kExcess = 0;
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w) {
    return LessExcess(Load(reinterpret_cast<const float*>(w)));
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) {
    return AddSignedQuadProducts(a, w, sum);
  }
};

// Rows of at most 127 by signed columns.
struct SignedWeightOperand : WordOperand<uint8_t, int8_t> {
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) {
    return AddSignedQuadProducts(a, w, sum);
  }
};

}  // namespace
}  // namespace godwit::kernels
