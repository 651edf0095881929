// The register tile of several rows by instructions that multiply matrices: two rows of eight bytes
// by two columns of them (USMMLA, SMMLA, BFMMLA). They do twice what a product of words does.
// Include after vec/neon.h.
//
// A vector of sums has two columns of two rows: (c0 r0, c0 r1, c1 r0, c1 r1). A panel's words of
// two steps, interleaved, are the columns. An operand has AddMatrices(rows, columns, sums) beside
// what a row alone needs. Its bits are those of its Accumulate.
#pragma once

#include "kernels/gemm/groups_tree-inl.h"
#include "kernels/gemm/pairs_dot-inl.h"
#include "kernels/gemm/quads_native-inl.h"
#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// Two rows of a tile, the second one the first itself where there is none.
template <class Operand, int R>
GODWIT_INLINE const typename Operand::A* SecondRow(const typename Operand::A* first, int64_t stride,
                                                   int64_t pair) {
  return 2 * pair + 1 < R ? first + stride : first;
}

// Two steps of a tile, or with kLast one.
template <class Operand, bool kLast, int R, int N>
GODWIT_INLINE void AddMatrixSteps(const typename Operand::A* a, int64_t a_stride,
                                  const typename Operand::W* w, int64_t w_stride,
                                  Stack<(R + 1) / 2, 2 * N>& sums) {
  ForColumns(
      [&](int64_t i) GODWIT_INLINE_LAMBDA {
        const auto* words = w + i / 2 * kLanes * Operand::kDepth;
        const Vec first = Operand::template Column<0>(words);
        const Vec second = kLast ? Zero() : Operand::template Column<0>(words + w_stride);
        return i % 2 == 0 ? InterleaveLow<4>(first, second) : InterleaveHigh<4>(first, second);
      },
      [&](int64_t pair, int64_t, const Vec& columns, Vec& sum) GODWIT_INLINE_LAMBDA {
        const auto* first = a + 2 * pair * a_stride;
        const auto* second = SecondRow<Operand, R>(first, a_stride, pair);
        const Vec rows = kLast ? TwoWords(first, second) : TwoDoubleWords(first, second);
        sum = Operand::AddMatrices(rows, columns, sum);
      },
      sums);
}

template <int kPlace, int R, int N>
GODWIT_INLINE void StoreMatrixRows(int64_t pair, Tree<2 * N>& sums, float* out, int64_t stride) {
  if constexpr (kPlace < N) {
    const Vec low = At<2 * kPlace>(sums), high = At<2 * kPlace + 1>(sums);
    float* const to = out + 2 * pair * stride + kPlace * kLanes;
    Store(to, EvenWords(low, high));
    if (2 * pair + 1 < R) Store(to + stride, OddWords(low, high));
    StoreMatrixRows<kPlace + 1, R, N>(pair, sums, out, stride);
  }
}

// The memory that a tile fetches with every step, as RunTile does.
template <class Operand, Fetch kFetch, int N>
struct TileFetcher {
  const typename Operand::W* ahead;
  Places places;

  GODWIT_INLINE void Fetch() {
    constexpr int64_t kElements = N * kLanes * Operand::kDepth / kFetch.share;
    constexpr int kLevel = kFetch.level != 0 ? kFetch.level : Operand::kFetchLevel;
    if constexpr (kFetch.places) {
      places.template Fetch<kElements * int64_t{sizeof(*ahead)}, kLevel>();
    } else {
      FetchAhead<kElements, kLevel>(ahead);
      ahead += kElements;
    }
  }
};

template <class Operand, Fetch kFetch, int R, int N>
GODWIT_INLINE void RunMatrixTile(const TileArgs<Operand>& tile) {
  Stack<(R + 1) / 2, 2 * N> sums;
  ForAll(
      [&](int64_t pair, int64_t i, Vec& sum) GODWIT_INLINE_LAMBDA {
        sum = Zero();
        if (!tile.resume) return;
        const float* from = tile.out + 2 * pair * tile.out_stride + i / 2 * kLanes;
        const Vec first = Load(from);
        const Vec second = 2 * pair + 1 < R ? Load(from + tile.out_stride) : first;
        sum = i % 2 == 0 ? InterleaveLow<4>(first, second) : InterleaveHigh<4>(first, second);
      },
      sums);
  TileFetcher<Operand, kFetch, N> fetcher = {.ahead = tile.ahead, .places = tile.places};
  const auto* a = tile.a;
  const auto* w = tile.w;
  const int64_t a_stride = tile.a_stride, w_stride = tile.w_stride;
  int64_t steps = tile.steps;
  for (; steps > 1; steps -= 2) {
    fetcher.Fetch();
    fetcher.Fetch();
    AddMatrixSteps<Operand, /*kLast=*/false, R, N>(a, a_stride, w, w_stride, sums);
    a += 2 * Operand::kDepth;
    w += 2 * w_stride;
  }
  if (steps > 0) {
    fetcher.Fetch();
    AddMatrixSteps<Operand, /*kLast=*/true, R, N>(a, a_stride, w, w_stride, sums);
  }
  ForRows(
      [&](int64_t pair, Tree<2 * N>& row)
          GODWIT_INLINE_LAMBDA { StoreMatrixRows<0, R, N>(pair, row, tile.out, tile.out_stride); },
      sums);
}

// The operands of words, with matrices for several rows.
struct MatrixQuadOperand : NativeQuadOperand {
  static constexpr bool kMatrices = true;
  static GODWIT_INLINE Vec AddMatrices(Vec rows, Vec columns, Vec sums) {
    return AddUnsignedBySignedMatrices(columns, rows, sums);
  }
};
// Rows of at most 127.
struct MatrixWeightOperand : NativeWeightOperand {
  static constexpr bool kMatrices = true;
  static GODWIT_INLINE Vec AddMatrices(Vec rows, Vec columns, Vec sums) {
    return AddSignedMatrices(columns, rows, sums);
  }
};
struct MatrixPairOperand : DotPairOperand {
  static constexpr bool kMatrices = true;
  static GODWIT_INLINE Vec AddMatrices(Vec rows, Vec columns, Vec sums) {
    return AddPairMatrices(columns, rows, sums);
  }
};

}  // namespace
}  // namespace godwit::kernels
