// The product of bf16 pairs by BFDOT, which multiplies and adds both halves of a pair at once. It
// adds the two products to each other first. Both additions round to odd, and subnormals count as
// zero. Include after vec/neon.h.
#pragma once

#include "kernels/gemm/pairs-inl.h"

namespace godwit::kernels {
namespace {

struct DotPairOperand : WordOperand<BF16, BF16> {
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddHalfProducts(a, w, sum); }
  static GODWIT_INLINE Vec StoreRounded(BF16* a, Vec x) {
    const uint16x4_t bits = NarrowByInstruction(x);
    Write(a, bits);
    return Widen(bits);
  }
};

}  // namespace
}  // namespace godwit::kernels
