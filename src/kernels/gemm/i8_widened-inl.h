// int8 products without VPDPBUSD: as int16, whose pairs VPMADDWD multiplies and adds exactly.
// (VPMADDUBSW on the bytes would saturate: two products reach 255 * 127 * 2.) Include after one of
// vec/*.h.
//
// The rows are widened once for every panel, the panel's bytes as they go by. Widening the panel
// into a buffer first gave 90 % of the peak instead of 88 % (AVX2, 96 x 64 x 2048): not enough to
// have two ways.
#pragma once

#include "kernels/gemm/i8-inl.h"

namespace godwit::kernels {
namespace {

// The int16 pairs (a, c) and (b, d) of a quad (a, b, c, d), in this order.
constexpr int kPairOrder[kQuad] = {0, 2, 1, 3};

// `quads` quads of int8 to those pairs. ahead: the row that will stand here in the next tile, which
// is fetched meanwhile.
GODWIT_INLINE void WidenRow(const int8_t* from, const int8_t* ahead, int64_t quads, int16_t* to) {
  int64_t quad = 0;
  for (; quad + kLanes <= quads; quad += kLanes) {
    __builtin_prefetch(ahead + quad * kQuad);
    WidenQuads(from + quad * kQuad, to + quad * kQuad);
  }
  for (; quad < quads; ++quad) {
    for (int64_t i = 0; i < kQuad; ++i) to[quad * kQuad + i] = from[quad * kQuad + kPairOrder[i]];
  }
}

struct WidenedQuadOperand {
  using Source = int8_t;
  using A = int16_t;
  using W = uint8_t;
  static constexpr int64_t kDepth = kQuad;
  static constexpr int kPhases = 2;
  template <int kPhase>
  static GODWIT_INLINE Vec Row(const int16_t* a) {
    float pair;
    __builtin_memcpy(&pair, a + 2 * kPhase, sizeof(pair));
    return Set1(pair);
  }
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w) {
    const Vec quads = Load(reinterpret_cast<const float*>(w));
    return kPhase == 0 ? EvenBytes(quads) : OddBytes(quads);
  }
  static GODWIT_INLINE Vec Accumulate(Vec a, Vec w, Vec sum) { return AddPairProducts(a, w, sum); }

  static constexpr int64_t kMostSteps = 256;  // 12 KiB of rows stay in the first-level cache
  struct Prepared {
    alignas(64) int16_t values[kTileRows * kMostSteps * kQuad];
  };
  static constexpr int64_t Stride(int64_t /*source_stride*/) { return kMostSteps * kQuad; }
  static GODWIT_INLINE const int16_t* Prepare(const int8_t* source, int64_t stride, int64_t rows,
                                              int64_t steps, Prepared& to) {
    for (int64_t r = 0; r < rows; ++r) {
      WidenRow(source + r * stride, source + (r + kTileRows) * stride, steps,
               to.values + r * kMostSteps * kQuad);
    }
    return to.values;
  }
};

}  // namespace
}  // namespace godwit::kernels
