// Pairs of neighbouring bf16, in the bits of an f32 lane, and their product without hardware for
// it. Include after one of vec/*.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

GODWIT_INLINE Vec LoadPairs(const BF16* w) { return Load(reinterpret_cast<const float*>(w)); }

// The even halves, then the odd ones. The rows are widened once for a panel, the panel's pairs as
// they go by.
struct WidenedPairOperand {
  using Source = BF16;
  using A = float;
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
  // Left to itself, GCC 12 lets products of the first phase take the place of their factors and
  // runs out of registers: five of the twelve sums went through memory, at 0.7 of the speed.
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) {
    __asm__("vfmadd231ps %1, %2, %0" : "+v"(sum) : "v"(a), "v"(w));
    return sum;
  }

  static constexpr int64_t kMostSteps = 256;  // 12 KiB of rows stay in the first-level cache
  struct Prepared {
    alignas(64) float values[kTileRows * kMostSteps * kDepth];
  };
  static constexpr int64_t Stride(int64_t /*source_stride*/) { return kMostSteps * kDepth; }
  static GODWIT_INLINE const float* Prepare(const BF16* source, int64_t stride, int64_t rows,
                                            int64_t steps, Prepared& to) {
    for (int64_t r = 0; r < rows; ++r) {
      const BF16* from = source + r * stride;
      float* row = to.values + r * kMostSteps * kDepth;
      int64_t i = 0;
      for (; i + kLanes <= steps * kDepth; i += kLanes) Store(row + i, Load(from + i));
      for (; i < steps * kDepth; ++i) row[i] = ToFloat(from[i]);
    }
    return to.values;
  }
};

}  // namespace
}  // namespace godwit::kernels
