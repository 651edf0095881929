// The product with grouped weights of many rows by instructions that multiply matrices: two rows of
// eight bytes by two columns of them (SMMLA, USMMLA). Include after vec/neon.h.
//
// In a slice, the words of a group lie in pairs: [words / 2][slice columns][2]. So a vector has
// eight bytes of each of two columns. Codes that have a centre are signed bytes less it. A product
// then has the integers of the definition, and no row has a sum to take off.
//
// A vector of sums has two columns of two rows: (c0 r0, c0 r1, c1 r0, c1 r1). Six rows have 24 of
// them. The integers of a block go to memory, and a second loop folds them into floats. In one
// function with both, GCC 12 would keep sums in memory.
#pragma once

#include "kernels/gemm/groups_dot-inl.h"

namespace godwit::kernels {
namespace {

// Codes as UnsignedQuads has them.
template <bool kHasCentre>
struct MatrixCodes : FetchedFar {
  static constexpr bool kMatrices = true;
  static constexpr int kQuadWords = 1;
  static constexpr int64_t kFewestRows = 7;
  static constexpr int64_t kMost = kMaxGroup;
  struct Prepared {};

  static GODWIT_INLINE Vec Bytes(Vec codes, int32_t centre) {
    if constexpr (!kHasCentre) return codes;
    return AddBytes(codes, Set1Ints(static_cast<int32_t>((256u - centre) * 0x01010101u)));
  }
  static GODWIT_INLINE PreparedRows Prepare(const GroupSizes& /*sizes*/, const GroupRows& of,
                                            int64_t /*rows*/, int64_t /*inputs*/,
                                            Prepared& /*to*/) {
    return {.words = of.a, .stride = of.a_stride, .starts = nullptr};
  }
  static GODWIT_INLINE Vec AddMatrices(Vec rows, Vec columns, Vec sums) {
    if constexpr (kHasCentre) return AddSignedMatrices(columns, rows, sums);
    return AddUnsignedBySignedMatrices(columns, rows, sums);
  }
};
template <Codes kCodes, bool kCentred>
using MatrixCodesOf = MatrixCodes<HasCentre(CodeForm::kUnsigned, kCodes, kCentred)>;

// Quads of kLanes columns, two neighbours at once: of a run, or where it has one of two runs.
template <class Operand, class Packed, int kPhase = 0>
GODWIT_INLINE void WidenPairsOfRun(const uint8_t* from, Vec table, int32_t centre, uint8_t* to) {
  if constexpr (kPhase < Packed::kPhases) {
    constexpr int kNext = Packed::kPhases == 1 ? 0 : kPhase + 1;
    const uint8_t* next = Packed::kPhases == 1 ? from + kLineBytes : from;
    const Vec low = Operand::Bytes(Packed::template Column<kPhase>(from, table), centre);
    const Vec high = Operand::Bytes(Packed::template Column<kNext>(next, table), centre);
    auto* const pairs = reinterpret_cast<float*>(to);
    Store(pairs, InterleaveLow<4>(low, high));
    Store(pairs + kLanes, InterleaveHigh<4>(low, high));
    WidenPairsOfRun<Operand, Packed, kPhase + 2>(from, table, centre, to + 2 * kSliceLine);
  }
}

template <class Operand, class Packed>
GODWIT_INLINE void WidenToPairs(const GroupSizes& sizes, const uint8_t* codes, uint8_t* to) {
  constexpr int kRuns = Packed::kPhases == 1 ? 2 : 1;
  static_assert(Packed::kPhases == 1 ? Packed::kLines == 1 : Packed::kPhases % 2 == 0);
  const Vec table = Load(reinterpret_cast<const float*>(sizes.table));
  for (int64_t run = 0; run < sizes.code_bytes; run += kRuns * Packed::kLines * kLineBytes) {
    for (int64_t i = 0; i < kSliceLine; i += 4 * kLanes) {
      WidenPairsOfRun<Operand, Packed>(codes + run + i, table, sizes.centre, to + 2 * i);
    }
    to += kRuns * Packed::kPhases * kSliceLine;
  }
}

// The integers of a block, in the bits of floats: [groups][rows][slice columns].
constexpr int64_t kGroupInts = kMostRows<MatrixCodes<true>> * kSliceColumns;
struct MatrixInts {
  alignas(64) float values[kMaxBlock / kMinGroup * kGroupInts];
};

// A group's codes w and, of each row, as many bytes.
struct MatrixGroup {
  const int8_t* a;
  int64_t stride, last_stride;  // bytes between rows, and between those of the last pair
  const uint8_t* w;
  int64_t inputs;
};

template <int kPlace, int N>
GODWIT_INLINE void StoreMatrixInts(Tree<N>& sums, float* first, float* second) {
  if constexpr (2 * kPlace < N) {
    const Vec low = At<2 * kPlace>(sums), high = At<2 * kPlace + 1>(sums);
    Store(first + kPlace * kLanes, EvenWords(low, high));
    Store(second + kPlace * kLanes, OddWords(low, high));
    StoreMatrixInts<kPlace + 1>(sums, first, second);
  }
}

// The integers of a group to ints [2 * kPairs, slice columns].
template <class Operand, int kPairs>
__attribute__((noinline)) void MatrixDots(const MatrixGroup& of, float* ints) {
  Stack<kPairs, 2 * kTileVecs> sums;
  ForAll([&](int64_t, int64_t, Vec& sum) GODWIT_INLINE_LAMBDA { sum = Zero(); }, sums);
  const int8_t* a = of.a;
  const uint8_t* w = of.w;
  int64_t left = of.inputs;
  do {
    ForColumns(
        [&](int64_t i)
            GODWIT_INLINE_LAMBDA { return Load(reinterpret_cast<const float*>(w) + i * kLanes); },
        [&](int64_t pair, int64_t, const Vec& columns, Vec& sum) GODWIT_INLINE_LAMBDA {
          const int8_t* first = a + 2 * pair * of.stride;
          const int8_t* second = first + (pair + 1 < kPairs ? of.stride : of.last_stride);
          sum = Operand::AddMatrices(TwoDoubleWords(first, second), columns, sum);
        },
        sums);
    a += 2 * kQuad;
    w += 2 * kSliceLine;
    left -= 2 * kQuad;
  } while (left > 0);
  ForRows(
      [&](int64_t pair, Tree<2 * kTileVecs>& row) GODWIT_INLINE_LAMBDA {
        float* first = ints + 2 * pair * kSliceColumns;
        StoreMatrixInts<0>(row, first, first + kSliceColumns);
      },
      sums);
}

// The integers of some rows of a block folded into the tile's place, from `row` on.
template <Scaling kScaling, int R>
GODWIT_INLINE void FoldMatrixRows(const WidenedTile& tile, int64_t row, const uint8_t* block,
                                  const int16_t* sums, const float* scales,
                                  const MatrixInts& ints) {
  const SliceSizes& sizes = tile.sizes;
  const float* dots = ints.values + row * kSliceColumns;
  sums += row * tile.sums_stride;
  TileFloats<R, kTileVecs> s;
  s.Clear();
  for (int64_t g = 0; g < sizes.groups; ++g) {
    ForColumns(
        [&](int64_t i) GODWIT_INLINE_LAMBDA {
          const uint8_t* numbers = block + g * sizes.group_bytes + sizes.code_bytes;
          return GroupNumbers<kScaling>(reinterpret_cast<const float*>(numbers) + i * kLanes,
                                        kSliceColumns);
        },
        [&](int64_t r, int64_t i, const auto& of, Vec& chain) GODWIT_INLINE_LAMBDA {
          const Vec dot = Load(dots + g * kGroupInts + r * kSliceColumns + i * kLanes);
          chain = of.Fold(dot, sums + r * tile.sums_stride + g, chain);
        },
        s.registers);
  }
  WidenedTile of = tile;
  of.x += row * kPanelColumns;
  FoldBlock<kScaling>(of, block + sizes.groups * sizes.group_bytes, sums,
                      scales + row * tile.scales_stride, s);
}

template <class Operand, Scaling kScaling, int kPairs>
__attribute__((noinline)) void RunMatrixGroups(const WidenedTile& tile) {
  static_assert(!kFloatsInMemory);
  const SliceSizes& sizes = tile.sizes;
  const int64_t stride = tile.rows.stride;
  // The second row of the last pair is the first itself where there is none.
  MatrixGroup group = {.a = tile.rows.words,
                       .stride = stride,
                       .last_stride = tile.height < 2 * kPairs ? 0 : stride,
                       .inputs = sizes.row_bytes};
  const int16_t* sums = tile.sums;
  const float* scales = tile.scales;
  const uint8_t* block = tile.slice;
  Ahead ahead = tile.ahead;
  MatrixInts ints;
  for (int64_t b = 0; b < sizes.blocks; ++b) {
    for (int64_t g = 0; g < sizes.groups; ++g) {
      ahead.Fetch<Operand::kFetchLevel, /*kTurns=*/false>();
      group.w = block + g * sizes.group_bytes;
      MatrixDots<Operand, kPairs>(group, ints.values + g * kGroupInts);
      group.a += sizes.row_bytes;
    }
    int64_t row = 0;
    for (; row + 2 <= tile.height; row += 2) {
      FoldMatrixRows<kScaling, 2>(tile, row, block, sums, scales, ints);
    }
    if (row < tile.height) FoldMatrixRows<kScaling, 1>(tile, row, block, sums, scales, ints);
    sums += sizes.groups;
    ++scales;
    block += sizes.block_bytes;
  }
}

}  // namespace
}  // namespace godwit::kernels
