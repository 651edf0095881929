// The product with grouped weights of many rows. A part of a panel is widened once for all of them:
// codes to the operands of a product, numbers to floats. Include after one of vec/*.h.
//
// A widened part has one slice of columns after the other, of as many as a tile has. A slice stays
// in the first-level cache while all tiles of rows go through it. It lies in the order in which
// they read it:
//   for every block
//     for every group
//       its codes         [words][slice columns], a word being four bytes of a column
//       scales, or parts  F32
//       zeros, or mins    F32, if there are
//     nested: d           F32
//     kNestedMins: m      F32
//     kNestedMins: parts  [groups / 2][slice columns][2] int16
#pragma once

#include "kernels/gemm/groups_tile-inl.h"
#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

constexpr int64_t kSliceColumns = kTileVecs * kLanes, kSlices = kPanelColumns / kSliceColumns;
constexpr int64_t kSliceLine = kSliceColumns * 4;  // bytes: a word or a number of every column

// Inputs of a part: those of the largest block or two, of a slice at most 20 KiB in bytes. With
// more, tiles begin less often.
constexpr int64_t kPartInputs = kSlices == 1 ? 256 : 512;
constexpr int64_t kMinGroup = 16, kMaxBlock = 256;

// The operand types below have
//   kQuadWords   words of a quad of a column, and of a row
//   kFewestRows  from so many on, it is faster than a tile that takes codes as they lie
//   kMost        inputs of a chunk: sums hold the products of so many
//   Columns      a quad of unsigned codes to words
//   Prepare      what a product takes of the rows of a part
//   First        the sum that a chunk begins with: its first word of a column times that of a row
//   Add          another word of a column times one of a row, to a sum
//   ToInts       the integers of a chunk, from its sums and its start
// Those with kMatrices have a way of their own through a part (groups_matrices-inl.h).

// The rows of a part as an operand takes them: their words, and a word for each chunk.
struct PreparedRows {
  const int8_t* words;
  int64_t stride;  // bytes between rows
  const int32_t* starts;
};
constexpr int64_t kStartChunks = kPartInputs / kMinGroup;

// The place of a row's word in the starts.
GODWIT_INLINE int64_t StartAt(int64_t chunk, int64_t row) { return chunk * kBlockRows + row; }

struct GroupSums {
  alignas(64) int32_t values[kStartChunks * kBlockRows];
};

// Four neighbours of each 16 bytes added, as int16: of four vectors, the sums of each side by side.
GODWIT_INLINE Vec SumsOfFours(Vec a, Vec b, Vec c, Vec d) {
  const Vec low = AddWords(InterleaveLow<4>(a, b), InterleaveHigh<4>(a, b));
  const Vec high = AddWords(InterleaveLow<4>(c, d), InterleaveHigh<4>(c, d));
  return AddWords(InterleaveLow<8>(low, high), InterleaveHigh<8>(low, high));
}

// Without VPDPBUSD, codes of at most 6 bits. VPMADDUBSW multiplies bytes, and sums are of int16: of
// even and of odd pairs of bytes. With the codes' centre taken off they hold those of a chunk:
// 512 / 2 * 127 < 2^15. Without, those of codes of 4 bits: 32 / 2 * 15 * 127. As int16 wrap around,
// it suffices that a sum does so in the end.
template <int kCentre, bool kCentred>
struct SmallCodes : FetchedFar {
  static constexpr int kQuadWords = 1;
  static constexpr int64_t kFewestRows = 4;
  static constexpr int64_t kMost = kCentre == 0 ? 32 : 512 / kCentre;
  using Prepared = GroupSums;

  static GODWIT_INLINE void Columns(Vec codes, int32_t /*centre*/, uint8_t* to) {
    Store(reinterpret_cast<float*>(to), codes);
  }
  // Minus the centre times the sums of even and of odd pairs.
  static GODWIT_INLINE PreparedRows Prepare(const GroupSizes& sizes, const GroupRows& of,
                                            int64_t rows, int64_t inputs, Prepared& to) {
    const PreparedRows prepared = {.words = of.a, .stride = of.a_stride, .starts = to.values};
    if constexpr (kCentre == 0) return prepared;
    constexpr int64_t kSixteens = 4 * kLanes / kMinGroup;  // of a vector
    const Vec centre = Set1Ints(kCentre * 0x01010101);
    for (int64_t row = 0; row < rows; row += 4) {
      const auto at = [&](int64_t i) GODWIT_INLINE_LAMBDA {
        return of.a + (row + i < rows ? row + i : rows - 1) * of.a_stride;
      };
      const int8_t *a = at(0), *b = at(1), *c = at(2), *d = at(3);
      for (int64_t i = 0; i < inputs; i += 4 * kLanes) {
        const auto products = [&](const int8_t* from) GODWIT_INLINE_LAMBDA {
          return ByteProducts(centre, Load(reinterpret_cast<const float*>(from + i)));
        };
        const Vec sums = SumsOfFours(products(a), products(b), products(c), products(d));
        StoreSixteens(reinterpret_cast<char*>(to.values + StartAt(i / kMinGroup, row)),
                      kBlockRows * 4, SubWords(Zero(), sums));
      }
    }
    JoinChunks(sizes.group < kMost ? sizes.group : kMost, inputs / kMinGroup, rows, to);
    static_assert(kPartInputs % (4 * kLanes) == 0 && kSixteens > 0);
    return prepared;
  }
  static GODWIT_INLINE Vec First(Vec a, Vec w, const int32_t* start) {
    if constexpr (kCentre == 0) return ByteProducts(w, a);
    return Add(a, w, BroadcastWord(start));
  }
  static GODWIT_INLINE Vec Add(Vec a, Vec w, Vec sum) { return AddByteProducts(w, a, sum); }
  static GODWIT_INLINE Vec ToInts(Vec sum, const int32_t* start) {
    const Vec ints = PairProducts(sum, Set1Words(1));
    if constexpr (kCentre == 0 || kCentred) return ints;
    return AddPairProducts(BroadcastWord(start), Set1Words(-1), ints);
  }

 private:
  // Joins the words of sixteen inputs to those of chunks of more.
  static GODWIT_INLINE void JoinChunks(int64_t chunk, int64_t sixteens, int64_t rows,
                                       Prepared& to) {
    for (int64_t inputs = kMinGroup; inputs < chunk; inputs *= 2) {
      sixteens /= 2;
      for (int64_t i = 0; i < sixteens; ++i) {
        for (int64_t row = 0; row < rows; row += kLanes) {
          const auto at = [&](int64_t place) GODWIT_INLINE_LAMBDA {
            return reinterpret_cast<float*>(to.values + StartAt(place, row));
          };
          Store(at(i), AddWords(Load(at(2 * i)), Load(at(2 * i + 1))));
        }
      }
    }
  }
};

// Without VPDPBUSD, any codes: as int16, whose pairs VPMADDWD multiplies and adds.
struct WideCodes : FetchedFar {
  static constexpr int kQuadWords = 2;
  static constexpr int64_t kFewestRows = 7;
  static constexpr int64_t kMost = kMaxGroup;
  struct Prepared {
    alignas(64) int16_t values[kBlockRows * kPartInputs];
  };

  static GODWIT_INLINE void Columns(Vec codes, int32_t centre, uint8_t* to) {
    const Vec less = Set1Words(static_cast<int16_t>(-centre));
    Store(reinterpret_cast<float*>(to), AddWords(EvenBytes(codes), less));
    Store(reinterpret_cast<float*>(to + kSliceLine), AddWords(OddBytes(codes), less));
  }
  static GODWIT_INLINE PreparedRows Prepare(const GroupSizes& /*sizes*/, const GroupRows& of,
                                            int64_t rows, int64_t inputs, Prepared& to) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < inputs; i += 4 * kLanes) {
        WidenQuads(of.a + row * of.a_stride + i, to.values + row * kPartInputs + i);
      }
    }
    return {.words = reinterpret_cast<const int8_t*>(to.values),
            .stride = kPartInputs * 2,
            .starts = nullptr};
  }
  static GODWIT_INLINE Vec First(Vec a, Vec w, const int32_t* /*start*/) {
    return PairProducts(a, w);
  }
  static GODWIT_INLINE Vec Add(Vec a, Vec w, Vec sum) { return AddPairProducts(a, w, sum); }
  static GODWIT_INLINE Vec ToInts(Vec sum, const int32_t* /*start*/) { return sum; }
};

// The operand of codes without VPDPBUSD.
template <Codes kCodes, bool kCentred>
struct WordsOf {
  using Type =
      SmallCodes<kCodes == Codes::k4 && !kCentred ? 0 : 1 << (BitsOf(kCodes) - 1), kCentred>;
};
template <bool kCentred>
struct WordsOf<Codes::k4Table, kCentred> {
  using Type = WideCodes;
};
template <bool kCentred>
struct WordsOf<Codes::k8, kCentred> {
  using Type = WideCodes;
};
template <Codes kCodes, bool kCentred>
using CodesByWords = typename WordsOf<kCodes, kCentred>::Type;

// The sizes of a part and of a slice of it.
struct SliceSizes {
  int64_t groups, blocks;
  int64_t chunk, chunks;  // inputs of one, and how many a group has
  int64_t row_bytes;      // of a group of a prepared row
  int64_t code_bytes, group_bytes, block_bytes, slice_bytes;

  template <class Operand, Scaling kScaling>
  static GODWIT_INLINE SliceSizes Of(const GroupSizes& sizes, int64_t blocks) {
    constexpr int64_t kNumbers = kScaling == Scaling::kZeros || kScaling == Scaling::kMins ? 2 : 1;
    SliceSizes of = {.groups = sizes.groups, .blocks = blocks};
    of.chunk = sizes.group < Operand::kMost ? sizes.group : Operand::kMost;
    of.chunks = sizes.group / of.chunk;
    of.row_bytes = sizes.group * Operand::kQuadWords;
    of.code_bytes = sizes.group / kQuad * Operand::kQuadWords * kSliceLine;
    of.group_bytes = of.code_bytes + kNumbers * kSliceLine;
    of.block_bytes = of.groups * of.group_bytes;
    if (IsNested(kScaling)) of.block_bytes += kSliceLine;
    if (kScaling == Scaling::kNestedMins) of.block_bytes += (1 + of.groups / 2) * kSliceLine;
    of.slice_bytes = blocks * of.block_bytes;
    return of;
  }
};

// The most bytes of a part: codes as int16, and numbers of the smallest groups.
constexpr int64_t kPartBytes =
    kPanelColumns *
    (kPartInputs * 2 + kPartInputs / kMinGroup * (8 + 2) + kPartInputs / kMaxBlock * 8);

// Widens a run of codes of kLanes columns.
template <class Operand, class Packed, int kPhase = 0>
GODWIT_INLINE void WidenRun(const uint8_t* from, Vec table, int32_t centre, uint8_t* to) {
  if constexpr (kPhase < Packed::kPhases) {
    Operand::Columns(Packed::template Column<kPhase>(from, table), centre, to);
    WidenRun<Operand, Packed, kPhase + 1>(from, table, centre,
                                          to + Operand::kQuadWords * kSliceLine);
  }
}

template <class Source>
GODWIT_INLINE void WidenNumbers(const Source* from, uint8_t* to) {
  for (int64_t i = 0; i < kSliceColumns; i += kLanes) {
    Store(reinterpret_cast<float*>(to) + i, Load(from + i));
  }
}

// The codes of a group as matrices have them.
template <class Operand, class Packed>
void WidenToPairs(const GroupSizes& sizes, const uint8_t* codes, uint8_t* to);

// A group, from its first byte and the slice's first column on.
template <class Operand, class Packed, Scaling kScaling>
GODWIT_INLINE void WidenGroup(const GroupSizes& sizes, const uint8_t* group, int64_t column,
                              uint8_t* to) {
  if constexpr (requires { Operand::kMatrices; }) {
    WidenToPairs<Operand, Packed>(sizes, group + column * 4, to);
    to += sizes.group * kSliceColumns;
  } else {
    const Vec table = Load(reinterpret_cast<const float*>(sizes.table));
    for (int64_t run = 0; run < sizes.code_bytes; run += Packed::kLines * kLineBytes) {
      for (int64_t i = 0; i < kSliceLine; i += 4 * kLanes) {
        WidenRun<Operand, Packed>(group + run + column * 4 + i, table, sizes.centre, to + i);
      }
      to += Packed::kPhases * Operand::kQuadWords * kSliceLine;
    }
  }
  const uint8_t* numbers = group + sizes.code_bytes;
  if constexpr (IsNested(kScaling)) {
    WidenNumbers(reinterpret_cast<const int8_t*>(numbers) + column, to);
  } else {
    WidenNumbers(Halves(numbers, 0) + column, to);
  }
  to += kSliceLine;
  if constexpr (kScaling == Scaling::kZeros) WidenNumbers(numbers + kHalvesBytes + column, to);
  if constexpr (kScaling == Scaling::kMins) WidenNumbers(Halves(numbers, 1) + column, to);
}

// Blocks of a panel to the slices of a part.
template <class Operand, class Packed, Scaling kScaling>
void WidenBlocks(const GroupSizes& sizes, const uint8_t* blocks, int64_t count, uint8_t* to) {
  const auto slice = SliceSizes::Of<Operand, kScaling>(sizes, count);
  for (int64_t b = 0; b < count; ++b) {
    const uint8_t* block = blocks + b * sizes.block_bytes;
    for (int64_t s = 0; s < kSlices; ++s) {
      const int64_t column = s * kSliceColumns;
      uint8_t* at = to + s * slice.slice_bytes + b * slice.block_bytes;
      for (int64_t g = 0; g < sizes.groups; ++g) {
        WidenGroup<Operand, Packed, kScaling>(sizes, block + g * sizes.group_bytes, column, at);
        at += slice.group_bytes;
      }
      const uint8_t* numbers = block + sizes.groups_bytes;
      if constexpr (IsNested(kScaling)) WidenNumbers(Halves(numbers, 0) + column, at);
      if constexpr (kScaling != Scaling::kNestedMins) continue;
      WidenNumbers(Halves(numbers, 1) + column, at + kSliceLine);
      at += 2 * kSliceLine;
      for (int64_t g = 0; g < sizes.groups; g += 2) {
        const auto* parts = reinterpret_cast<const int8_t*>(numbers) + 2 * kHalvesBytes +
                            g * kPanelColumns + 2 * column;
        for (int64_t i = 0; i < kSliceColumns; i += kLanes) {
          Store(reinterpret_cast<float*>(at) + i, LoadWords(parts + 2 * i));
        }
        at += kSliceLine;
      }
    }
  }
}

// The most rows of a tile. Where registers are few, its floats lie in memory, and one more row has
// its integers there.
constexpr bool kFloatsInMemory = kLanes == 8;
constexpr int64_t kManyTileRows = kFloatsInMemory ? 4 : 3;

// Vectors of a tile in memory.
template <int R>
struct TileVecs {
  alignas(64) float values[R * kSliceColumns];

  GODWIT_INLINE float* At(int64_t r, int64_t i) { return values + r * kSliceColumns + i * kLanes; }
};

template <>
struct TileVecs<0> {};

// The floats of a tile.
template <int R, int N>
struct TileFloats {
  Stack<R, N> registers;
  TileVecs<kFloatsInMemory ? R : 0> memory;

  GODWIT_INLINE void Clear() {
    ForAll(
        [&](int64_t r, int64_t i, Vec& x) GODWIT_INLINE_LAMBDA {
          x = Zero();
          if constexpr (kFloatsInMemory) Store(memory.At(r, i), x);
        },
        registers);
  }
  GODWIT_INLINE Stack<R, N>& InRegisters() {
    ForAll(
        [&](int64_t r, int64_t i, Vec& x) GODWIT_INLINE_LAMBDA {
          if constexpr (kFloatsInMemory) x = Load(memory.At(r, i));
        },
        registers);
    return registers;
  }
  // f(row, shared, integers, vector), as ForColumns has them.
  template <class Share, class F>
  GODWIT_INLINE void Fold(const Share& share, const F& f, Stack<R, N>& ints) {
    if constexpr (kFloatsInMemory) {
      ForColumns(
          share,
          [&](int64_t r, int64_t i, const auto& shared, Vec& dots) GODWIT_INLINE_LAMBDA {
            Vec x = Load(memory.At(r, i));
            f(r, shared, dots, x);
            Store(memory.At(r, i), x);
          },
          ints);
    } else {
      ForColumns(
          share,
          [&](int64_t r, int64_t, const auto& shared, Vec& dots, Vec& x)
              GODWIT_INLINE_LAMBDA { f(r, shared, dots, x); },
          ints, registers);
    }
  }
};

// The blocks of a part that a tile goes through.
struct WidenedTile {
  const SliceSizes& sizes;
  PreparedRows rows;  // from the tile's first row on, as are the next two
  const int16_t* sums;
  int64_t sums_stride;
  const float* scales;
  int64_t scales_stride;
  const uint8_t* slice;
  float* x;        // [R, kPanelColumns], at the slice: sums that go on
  int64_t height;  // R
  Ahead ahead;
};

// Words of rows times those of columns, kWords of them. With kFirst they begin the sums.
template <class Operand, int kWords, bool kFirst, int R, int N>
GODWIT_INLINE void AddWordProducts(const int8_t* a, int64_t stride, const int32_t* starts,
                                   const uint8_t* w, Stack<R, N>& sums) {
  if constexpr (kWords > 0) {
    Tree<N> columns;
    ForEach(
        [&](int64_t i, Vec& to)
            GODWIT_INLINE_LAMBDA { to = Load(reinterpret_cast<const float*>(w + i * kLanes * 4)); },
        columns);
    ForRows(
        [&](int64_t r, Tree<N>& row) GODWIT_INLINE_LAMBDA {
          const Vec word = BroadcastWord(a + r * stride);
          ForEach(
              [&](int64_t, Vec& sum, Vec& column) GODWIT_INLINE_LAMBDA {
                sum = kFirst ? Operand::First(word, column, starts + r)
                             : Operand::Add(word, column, sum);
              },
              row, columns);
        },
        sums);
    // The next words are loaded when they are needed: before, they would push sums out of the
    // registers.
    __asm__ volatile("" ::: "memory");
    AddWordProducts<Operand, kWords - 1, false>(a + 4, stride, starts, w + kSliceLine, sums);
  }
}

// The integers of a chunk: `inputs` codes at w times the rows a.
template <class Operand, int R, int N>
GODWIT_INLINE void ChunkDots(int64_t inputs, const int8_t* a, int64_t stride, const int32_t* starts,
                             const uint8_t* w, Stack<R, N>& sums) {
  constexpr int kWords = kMinGroup / kQuad * Operand::kQuadWords;
  AddWordProducts<Operand, kWords, /*kFirst=*/true>(a, stride, starts, w, sums);
  for (int64_t left = inputs - kMinGroup; left > 0; left -= kMinGroup) {
    a += kWords * 4;
    w += kWords * kSliceLine;
    AddWordProducts<Operand, kWords, /*kFirst=*/false>(a, stride, starts, w, sums);
  }
  ForAll([&](int64_t r, int64_t, Vec& x)
             GODWIT_INLINE_LAMBDA { x = Operand::ToInts(x, starts + r); },
         sums);
}

// The integers of a group.
template <class Operand, Scaling kScaling, int R, int N>
GODWIT_INLINE void GroupDots(const SliceSizes& sizes, const int8_t* a, int64_t stride,
                             const int32_t* starts, const uint8_t* w, Stack<R, N>& sums) {
  ChunkDots<Operand>(sizes.chunk, a, stride, starts, w, sums);
  if constexpr (Operand::kMost < MaxGroup(kScaling)) {
    TileVecs<R> before;
    for (int64_t chunk = 1; chunk < sizes.chunks; ++chunk) {
      a += sizes.chunk * Operand::kQuadWords;
      w += sizes.chunk / kQuad * Operand::kQuadWords * kSliceLine;
      starts += StartAt(1, 0);
      ForAll([&](int64_t r, int64_t i, Vec& x) GODWIT_INLINE_LAMBDA { Store(before.At(r, i), x); },
             sums);
      ChunkDots<Operand>(sizes.chunk, a, stride, starts, w, sums);
      ForAll([&](int64_t r, int64_t i, Vec& x)
                 GODWIT_INLINE_LAMBDA { x = AddInts(x, Load(before.At(r, i))); },
             sums);
    }
  }
}

// Adds a block whose groups are in s to x, at the tile's place.
template <Scaling kScaling, int R, int N>
GODWIT_INLINE void FoldBlock(const WidenedTile& tile, const uint8_t* numbers, const int16_t* sums,
                             const float* scales, TileFloats<R, N>& s) {
  const auto* d = reinterpret_cast<const float*>(numbers);
  Stack<R, N> mins;
  if constexpr (kScaling == Scaling::kNestedMins) {
    const auto* words = reinterpret_cast<const int8_t*>(sums);
    const uint8_t* parts = numbers + 2 * kSliceLine;
    const int64_t stride = tile.sums_stride * 2;
    AddWordProducts<WideCodes, 1, /*kFirst=*/true>(words, stride, nullptr, parts, mins);
    for (int64_t pair = 1; pair < tile.sizes.groups / 2; ++pair) {
      AddWordProducts<WideCodes, 1, /*kFirst=*/false>(words + pair * 4, stride, nullptr,
                                                      parts + pair * kSliceLine, mins);
    }
  }
  ForAll(
      [&](int64_t r, int64_t i, Vec& chain, Vec& min) GODWIT_INLINE_LAMBDA {
        float* to = tile.x + r * kPanelColumns + i * kLanes;
        const Vec a = Set1(scales[r * tile.scales_stride]);
        if constexpr (IsNested(kScaling)) chain = Mul(chain, Load(d + i * kLanes));
        Vec x = MulAdd(chain, a, Load(to));
        if constexpr (kScaling == Scaling::kNestedMins) {
          x = NegMulAdd(Mul(IntsToFloats(min), Load(d + kSliceColumns + i * kLanes)), a, x);
        }
        Store(to, x);
      },
      s.InRegisters(), mins);
}

template <class Operand, Scaling kScaling, int R>
__attribute__((noinline)) void RunWidenedTile(const WidenedTile& tile) {
  constexpr int N = kTileVecs;
  const SliceSizes& sizes = tile.sizes;
  const int8_t* a = tile.rows.words;
  const int32_t* starts = tile.rows.starts;
  const int16_t* sums = tile.sums;
  const float* scales = tile.scales;
  const uint8_t* at = tile.slice;
  Ahead ahead = tile.ahead;
  for (int64_t b = 0; b < sizes.blocks; ++b) {
    const int16_t* block_sums = sums;
    TileFloats<R, N> s;
    s.Clear();
    for (int64_t g = 0; g < sizes.groups; ++g) {
      ahead.Fetch<Operand::kFetchLevel, /*kTurns=*/false>();
      Stack<R, N> ints;
      GroupDots<Operand, kScaling>(sizes, a, tile.rows.stride, starts, at, ints);
      s.Fold(
          [&](int64_t i) GODWIT_INLINE_LAMBDA {
            return GroupNumbers<kScaling>(
                reinterpret_cast<const float*>(at + sizes.code_bytes) + i * kLanes, kSliceColumns);
          },
          [&](int64_t r, const auto& of, Vec dots, Vec& chain)
              GODWIT_INLINE_LAMBDA { chain = of.Fold(dots, sums + r * tile.sums_stride, chain); },
          ints);
      a += sizes.row_bytes;
      starts += sizes.chunks * StartAt(1, 0);
      ++sums;
      at += sizes.group_bytes;
    }
    FoldBlock<kScaling>(tile, at, block_sums, scales, s);
    ++scales;
    at += sizes.block_bytes - sizes.groups * sizes.group_bytes;
  }
}

// As RunWidenedTile, by matrices of pairs of rows.
template <class Operand, Scaling kScaling, int kPairs>
void RunMatrixGroups(const WidenedTile& tile);

// The rows that tiles are cut at multiples of, and the most rows of a tile.
template <class Operand>
constexpr int64_t kCutRows = 1;
template <class Operand>
requires(Operand::kMatrices) constexpr int64_t kCutRows<Operand> = 2;
template <class Operand>
constexpr int64_t kMostRows = kManyTileRows;
template <class Operand>
requires(Operand::kMatrices) constexpr int64_t kMostRows<Operand> = 6;

// Tiles of 1, 2 and more rows.
template <class Operand>
struct ManyRowTiles {
  void (*run[kMostRows<Operand>])(const WidenedTile&);
};
template <class Operand, Scaling kScaling>
constexpr ManyRowTiles<Operand> MakeManyRowTiles() {
  if constexpr (requires { Operand::kMatrices; }) {
    return {.run = {RunMatrixGroups<Operand, kScaling, 1>, RunMatrixGroups<Operand, kScaling, 1>,
                    RunMatrixGroups<Operand, kScaling, 2>, RunMatrixGroups<Operand, kScaling, 2>,
                    RunMatrixGroups<Operand, kScaling, 3>, RunMatrixGroups<Operand, kScaling, 3>}};
  } else {
    ManyRowTiles<Operand> tiles = {.run = {RunWidenedTile<Operand, kScaling, 1>,
                                           RunWidenedTile<Operand, kScaling, 2>,
                                           RunWidenedTile<Operand, kScaling, 3>}};
    if constexpr (kManyTileRows > 3) tiles.run[3] = RunWidenedTile<Operand, kScaling, 4>;
    return tiles;
  }
}

// At most kBlockRows rows through a panel: x [rows, kPanelColumns].
template <class Operand, class Packed, Scaling kScaling>
void RunManyRows(const GroupSizes& sizes, const GroupRows& of, int64_t rows, const uint8_t* panel,
                 int64_t blocks, float* x) {
  constexpr auto kTiles = MakeManyRowTiles<Operand, kScaling>();
  alignas(64) uint8_t part[kPartBytes];
  typename Operand::Prepared prepared;
  const int64_t tiles = (rows + kMostRows<Operand> - 1) / kMostRows<Operand>;
  const int64_t cuts = (rows + kCutRows<Operand> - 1) / kCutRows<Operand>;
  const int64_t most = kPartInputs / sizes.block;
  for (int64_t begin = 0; begin < blocks; begin += most) {
    const int64_t count = blocks - begin < most ? blocks - begin : most;
    const auto slice = SliceSizes::Of<Operand, kScaling>(sizes, count);
    const GroupRows source = of.From(0, begin, sizes);
    const uint8_t* from = panel + begin * sizes.block_bytes;
    WidenBlocks<Operand, Packed, kScaling>(sizes, from, count, part);
    const PreparedRows words = Operand::Prepare(sizes, source, rows, count * sizes.block, prepared);
    // The next part is fetched, some of it with every group.
    const int64_t share = sizes.block_bytes / (tiles * kSlices * sizes.groups);
    const uint8_t* ahead = from + count * sizes.block_bytes;
    for (int64_t s = 0; s < kSlices; ++s) {
      for (int64_t tile = 0; tile < tiles; ++tile) {
        const int64_t row = cuts * tile / tiles * kCutRows<Operand>;
        const int64_t end = cuts * (tile + 1) / tiles * kCutRows<Operand>;
        const int64_t next = end < rows ? end : rows;
        kTiles.run[next - row - 1](
            {.sizes = slice,
             .rows = {.words = words.words + row * words.stride,
                      .stride = words.stride,
                      .starts = words.starts + row},
             .sums = source.sums + row * source.sums_stride,
             .sums_stride = source.sums_stride,
             .scales = source.scales + row * source.scales_stride,
             .scales_stride = source.scales_stride,
             .slice = part + s * slice.slice_bytes,
             .x = x + row * kPanelColumns + s * kSliceColumns,
             .height = next - row,
             .ahead = {.at = ahead, .lines = (share + 63) / 64, .step = share}});
        ahead += share * sizes.groups * count;
      }
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
