// Pairs of neighbouring bf16, in the bits of an f32 lane, and their product without hardware for
// it. Include after one of vec/*.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

GODWIT_INLINE Vec LoadPairs(const BF16* w) { return Load(reinterpret_cast<const float*>(w)); }

GODWIT_INLINE void WidenPairs(const BF16* from, const BF16* /*ahead*/, int64_t n, float* to) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(to + i, Load(from + i));
  for (; i < n; ++i) to[i] = ToFloat(from[i]);
}

// The even halves, then the odd ones. The panel's pairs are widened as they go by.
struct WidenedPairOperand : RowsWidened<BF16, float, 2, WidenPairs> {
  using W = BF16;
  static constexpr int64_t kDepth = 2;
  static constexpr int kPhases = 2;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const float* a) {
    return Set1(a[kPhase]);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const BF16* w) {
    return kPhase == 0 ? EvenHalf(LoadPairs(w)) : OddHalf(LoadPairs(w));
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddProduct(a, w, sum); }
  // Stores numbers as rows, rounded to bf16, and returns what they became.
  static GODWIT_INLINE Vec StoreRounded(float* a, Vec x) {
    const Vec rounded = RoundToBF16(x);
    Store(a, rounded);
    return rounded;
  }
};

}  // namespace
}  // namespace godwit::kernels
