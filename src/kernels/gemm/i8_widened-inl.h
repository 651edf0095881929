// int8 products without VPDPBUSD: as int16, whose pairs VPMADDWD multiplies and adds exactly.
// (VPMADDUBSW on the bytes would saturate: two products reach 255 * 127 * 2.) Include after one of
// vec/*.h.
//
// The rows are widened once for every panel, the panel's bytes as they go by. A panel widened into
// a buffer first gave 90 % of the peak instead of 88 % (AVX2, 96 x 64 x 2048). That is not enough
// to have two ways.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// The int16 pairs (a, c) and (b, d) of a quad (a, b, c, d), in this order.
constexpr int kPairOrder[kQuad] = {0, 2, 1, 3};

// n int8, whole quads, to those pairs.
GODWIT_INLINE void WidenQuadRow(const int8_t* from, const int8_t* ahead, int64_t n, int16_t* to) {
  int64_t i = 0;
  for (; i + kLanes * kQuad <= n; i += kLanes * kQuad) {
    __builtin_prefetch(ahead + i);
    WidenQuads(from + i, to + i);
  }
  for (; i < n; ++i) to[i] = from[i / kQuad * kQuad + kPairOrder[i % kQuad]];
}

struct WidenedQuadOperand : RowsWidened<int8_t, int16_t, kQuad, WidenQuadRow> {
  using W = uint8_t;
  static constexpr int64_t kDepth = kQuad;
  static constexpr int kPhases = 2;
  static constexpr int32_t kExcess = 128;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const int16_t* a) {
    return BroadcastWord(a + 2 * kPhase);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w) {
    const Vec quads = Load(reinterpret_cast<const float*>(w));
    return kPhase == 0 ? EvenBytes(quads) : OddBytes(quads);
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddPairProducts(a, w, sum); }
};

// Unsigned rows of at most 127 by signed columns, as bytes: two products stay below 2^15.
struct SmallWeightOperand : WordOperand<uint8_t, int8_t> {
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) {
    return AddSmallQuadProducts(a, w, sum);
  }
};

}  // namespace
}  // namespace godwit::kernels
