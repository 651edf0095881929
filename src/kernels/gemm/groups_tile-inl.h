// The register tile of grouped weights: it makes the integers of a group and folds them into floats
// before it goes on to the next. Include after one of vec/*.h.
#pragma once

#include "kernels/gemm/groups_tree-inl.h"
#include "kernels/gemm/tile-inl.h"
#include "kernels/group_packing.h"

namespace godwit::kernels {
namespace {

// The rows of a tile, which holds two of every vector: the integers of a group, and floats. With
// more rows these would lie in memory, and the folds cost more than reading the codes more often.
constexpr int64_t kGroupTileRows = 3;
constexpr int GroupTileVecs(int64_t rows) {
  return rows == 1 && 2 * kTileVecs * kLanes <= kPanelColumns ? 2 * kTileVecs : kTileVecs;
}

// The bytes that operands multiply: codes as unsigned bytes, tables 128 higher than their numbers.
// Or signed ones, for instructions that multiply no others: codes of 8 bits less 128, tables as
// they are. Or all that have a centre less it.
enum class CodeForm { kUnsigned, kSigned, kCentred };
constexpr int32_t kExcessOfBytes = 128;

// The operand types below multiply a run of codes, of kLines lines. kPhases is how many quads of a
// column it has. Column has one of them as unsigned bytes, with the table that codes are looked up
// in, if they are. Sums begin with Start(first) and become int32 by ToInts(sum, first), where
// `first` is added to them. In between they hold the products of kMost inputs, of which Add adds a
// quad.

// 4 bits: two quads of a column.
template <class Quads>
struct NibbleOperand : Quads {
  static constexpr int kPhases = 2;
  static constexpr int kLines = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w, Vec /*table*/) {
    const Vec bytes = Load(reinterpret_cast<const float*>(w));
    return kPhase == 0 ? LowNibbles(bytes) : HighNibbles(bytes);
  }
};

// 4 bits: two quads of a column, each code the place of a byte.
template <class Quads>
struct TableOperand : Quads {
  static constexpr int kPhases = 2;
  static constexpr int kLines = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w, Vec table) {
    return LookUp(table, NibbleOperand<Quads>::template Column<kPhase>(w, table));
  }
};

// 5 or 6 bits: so many quads, two in a line as above, and a line with the other bits of all.
template <Codes kCodes, class Quads>
struct PlaneOperand : Quads {
  static constexpr int kPhases = RunInputs(kCodes) / kQuad;
  static constexpr int kLines = RunLines(kCodes);
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w, Vec table) {
    constexpr int kHighBits = BitsOf(kCodes) - 4, kMask = ((1 << kHighBits) - 1) << 4;
    const Vec low =
        NibbleOperand<Quads>::template Column<kPhase % 2>(w + kPhase / 2 * kLineBytes, table);
    const Vec high = Load(reinterpret_cast<const float*>(w + (kLines - 1) * kLineBytes));
    return WithBits<4 - kHighBits * kPhase, kMask>(low, high);
  }
};

// Bytes, as they are in a panel, or as UnpackCodes makes them.
template <class Quads>
struct ByteOperand : Quads {
  static constexpr int kPhases = 1;
  static constexpr int kLines = 1;
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w, Vec /*table*/) {
    const Vec bytes = Load(reinterpret_cast<const float*>(w));
    if constexpr (Quads::kForm == CodeForm::kSigned) return LessExcess(bytes);
    return bytes;
  }
};

// Without VPDPBUSD, sums of int16: those of 32 / 2 products of 4 bits stay below 16 * 15 * 127.
struct WordQuads : FetchedFar {
  static constexpr CodeForm kForm = CodeForm::kUnsigned;
  static constexpr int64_t kMost = 32;
  static GODWIT_INLINE Vec Start(Vec /*first*/) { return Zero(); }
  static GODWIT_INLINE Vec Add(Vec a, Vec w, Vec sum) { return AddWords(sum, ByteProducts(w, a)); }
  static GODWIT_INLINE Vec ToInts(Vec sum, Vec first) {
    return AddPairProducts(sum, Set1Words(1), first);
  }
};

// Sums of any bytes, as int16 whose pairs VPMADDWD adds.
struct WideQuads : FetchedFar {
  static constexpr CodeForm kForm = CodeForm::kUnsigned;
  static constexpr int64_t kMost = kMaxGroup;
  static GODWIT_INLINE Vec Start(Vec first) { return first; }
  static GODWIT_INLINE Vec Add(Vec a, Vec w, Vec sum) {
    return AddPairProducts(OddBytesSigned(a), OddBytes(w),
                           AddPairProducts(EvenBytesSigned(a), EvenBytes(w), sum));
  }
  static GODWIT_INLINE Vec ToInts(Vec sum, Vec /*first*/) { return sum; }
};

// The number that a product of such codes with a row is too high by, times the row's sum.
constexpr int32_t CentreOf(const GroupFormat& format, CodeForm form) {
  if (form == CodeForm::kCentred) return 0;
  const bool is_signed = form == CodeForm::kSigned;
  if (format.codes == Codes::k4Table) return is_signed ? 0 : kExcessOfBytes;
  return Centre(format) - (is_signed && format.codes == Codes::k8 ? kExcessOfBytes : 0);
}

// The sizes that follow from a format, computed once: the functions of group_packing.h divide.
struct GroupSizes {
  int64_t group, groups, block;  // inputs of a group, groups and inputs of a block
  int64_t code_bytes, group_bytes, groups_bytes, block_bytes;
  int32_t centre;  // CentreOf
  // The table of codes of 4 bits, once for each 16 bytes of a vector.
  alignas(64) uint8_t table[64];

  explicit GroupSizes(const GroupFormat& format, CodeForm form)
      : group(format.group),
        groups(GroupsOfBlock(format)),
        block(BlockInputs(format)),
        code_bytes(CodeBytes(format)),
        group_bytes(GroupBytes(format)),
        groups_bytes(GroupsBytes(format)),
        block_bytes(BlockBytes(format)),
        centre(CentreOf(format, form)) {
    for (size_t i = 0; i < sizeof(table); ++i) {
      const auto code = static_cast<int32_t>(i % 16);
      const int32_t of =
          format.codes == Codes::k4Table ? format.table[i % 16] : code - Centre(format);
      table[i] = static_cast<uint8_t>(form == CodeForm::kUnsigned ? of + kExcessOfBytes : of);
    }
  }

  // With bytes in the place of codes.
  GroupSizes Unpacked() const {
    GroupSizes sizes = *this;
    const int64_t more = group * kPanelColumns - code_bytes;
    sizes.code_bytes += more;
    sizes.group_bytes += more;
    sizes.groups_bytes += groups * more;
    sizes.block_bytes += groups * more;
    return sizes;
  }
};

// Rows of activations from some block on.
struct GroupRows {
  const int8_t* a;
  int64_t a_stride;
  const float* scales;
  int64_t scales_stride;
  const int16_t* sums;
  int64_t sums_stride;

  explicit GroupRows(const GroupGemmArgs& args)
      : a(args.a),
        a_stride(args.a_stride),
        scales(args.a_scales),
        scales_stride(args.a_scales_stride),
        sums(args.a_sums),
        sums_stride(args.a_sums_stride) {}

  GroupRows From(int64_t row, int64_t block, const GroupSizes& sizes) const {
    GroupRows rest = *this;
    rest.a += row * a_stride + block * sizes.block;
    rest.scales += row * scales_stride + block;
    rest.sums += row * sums_stride + block * sizes.groups;
    return rest;
  }
};

// The place to read where `at` would be in order: a line of each of four 4 KiB pages by turns.
// Places in tile-inl.h has the reason.
constexpr uint64_t kTurnPages = 4, kPageLines = 4096 / 64;
GODWIT_INLINE const uint8_t* ByTurns(const uint8_t* at) {
  const uint64_t line = reinterpret_cast<uintptr_t>(at) / 64;
  const uint64_t turn = line % (kTurnPages * kPageLines);
  const uint64_t of_pages = turn % kTurnPages * kPageLines + turn / kTurnPages;
  return reinterpret_cast<const uint8_t*>((line - turn + of_pages) * 64);
}

// Whether one row fetches a panel that way, where it reads it in order: as far ahead. On a Xeon
// nested weights then come at 1.06 of their speed from memory, others at 0.98 to 1.
template <Scaling kScaling>
constexpr bool kByTurns = IsNested(kScaling) && GroupTileVecs(1) * kLanes == kPanelColumns;
constexpr int64_t kTurnBytes = kTurnPages * 4096;

// Memory that is fetched ahead, by turns or in order, a little with every quad or two: as much at
// once would have to wait.
struct Ahead {
  const uint8_t* at;
  int64_t lines;  // that are asked for, of 64 bytes
  int64_t step;   // bytes

  template <int kLevel, bool kTurns>
  GODWIT_INLINE void Fetch() {
    for (int64_t line = 0; line < lines; ++line) {
      const uint8_t* to = at + 64 * line;
      __builtin_prefetch(kTurns ? ByTurns(to) : to, /*for writing=*/0, 4 - kLevel);
    }
    at += step;
  }
};

// The blocks that a tile goes through.
struct GroupTile {
  const GroupSizes& sizes;
  GroupRows rows;
  const uint8_t* blocks;  // in the panel
  int64_t count;          // of them
  int64_t column;         // the tile's first one in the panel
  float* x;               // [R, kPanelColumns], at that column: sums that go on
  Ahead ahead;
};

// [kGroupTileRows, kPanelColumns], of integers in the bits of floats.
struct TileInts {
  alignas(64) float values[kGroupTileRows * kPanelColumns];
  float* At(int64_t r, int64_t i) { return values + r * kPanelColumns + i * kLanes; }
};

// A quad of each of some rows times the columns, for every quad of a run.
template <class Operand, int kPhase, bool kTurns, int R, int N>
GODWIT_INLINE void AddRun(const int8_t* a, int64_t a_stride, const uint8_t* w, Vec table,
                          Ahead& ahead, Stack<R, N>& sums) {
  if constexpr (kPhase < Operand::kPhases) {
    if constexpr (kPhase % 2 == 0) ahead.Fetch<Operand::kFetchLevel, kTurns>();
    Tree<N> columns;
    ForEach(
        [&](int64_t i, Vec& to) GODWIT_INLINE_LAMBDA {
          to = Operand::template Column<kPhase>(w + i * kLanes * 4, table);
        },
        columns);
    ForRows(
        [&](int64_t r, Tree<N>& row) GODWIT_INLINE_LAMBDA {
          const Vec quad = BroadcastWord(a + r * a_stride + kPhase * kQuad);
          ForEach([&](int64_t, Vec& sum, Vec& column)
                      GODWIT_INLINE_LAMBDA { sum = Operand::Add(quad, column, sum); },
                  row, columns);
        },
        sums);
    // The lines are loaded again: kept, they would push sums out of the registers.
    __asm__ volatile("" ::: "memory");
    AddRun<Operand, kPhase + 1, kTurns>(a, a_stride, w, table, ahead, sums);
  }
}

// The integers of a group: its codes times the rows a, without the centre.
template <class Operand, bool kTurns, int R, int N>
GODWIT_INLINE void Dots(const GroupSizes& sizes, const GroupRows& rows, const uint8_t* codes,
                        Ahead& ahead, Stack<R, N>& sums) {
  constexpr int64_t kRunInputs = Operand::kPhases * kQuad;
  TileInts before;  // of the group's first inputs, where sums hold fewer
  const int8_t* a = rows.a;
  const Vec table = Load(reinterpret_cast<const float*>(sizes.table));
  int64_t left = sizes.group;
  for (bool first = true;; first = false) {
    const int64_t end = left > Operand::kMost ? left - Operand::kMost : 0;
    const auto start = [&](int64_t r, int64_t i) GODWIT_INLINE_LAMBDA {
      return first ? Set1Ints(-sizes.centre * rows.sums[r * rows.sums_stride])
                   : Load(before.At(r, i));
    };
    ForAll([&](int64_t r, int64_t i, Vec& x)
               GODWIT_INLINE_LAMBDA { x = Operand::Start(start(r, i)); },
           sums);
    for (; left > end; left -= kRunInputs) {
      AddRun<Operand, 0, kTurns>(a, rows.a_stride, codes, table, ahead, sums);
      a += kRunInputs;
      codes += Operand::kLines * kLineBytes;
    }
    ForAll([&](int64_t r, int64_t i, Vec& x)
               GODWIT_INLINE_LAMBDA { x = Operand::ToInts(x, start(r, i)); },
           sums);
    if (Operand::kMost >= kMaxGroup || left == 0) return;
    ForAll([&](int64_t r, int64_t i, Vec& x) GODWIT_INLINE_LAMBDA { Store(before.At(r, i), x); },
           sums);
  }
}

GODWIT_INLINE const F16* Halves(const uint8_t* numbers, int64_t place) {
  return reinterpret_cast<const F16*>(numbers + place * kHalvesBytes);
}

// The numbers of a group, of kLanes columns.
template <Scaling kScaling>
struct GroupNumbers {
  Vec scale;   // or the part
  Vec second;  // zeros or mins

  GODWIT_INLINE GroupNumbers(const uint8_t* numbers, int64_t column) {
    if constexpr (IsNested(kScaling)) {
      scale = Load(reinterpret_cast<const int8_t*>(numbers) + column);
    } else {
      scale = Load(Halves(numbers, 0) + column);
    }
    second = Zero();
    if constexpr (kScaling == Scaling::kZeros) second = Load(numbers + kHalvesBytes + column);
    if constexpr (kScaling == Scaling::kMins) second = Load(Halves(numbers, 1) + column);
  }

  // From floats: those of a kind, and behind them, so many away, the others.
  GODWIT_INLINE GroupNumbers(const float* numbers, int64_t others) {
    scale = Load(numbers);
    second = Zero();
    if constexpr (kScaling == Scaling::kZeros || kScaling == Scaling::kMins) {
      second = Load(numbers + others);
    }
  }

  // s with a group (kernel_table.h, GroupGemmArgs).
  GODWIT_INLINE Vec Fold(Vec ints, const int16_t* sum, Vec s) const {
    const Vec dot = IntsToFloats(ints);
    if constexpr (kScaling == Scaling::kZeros) {
      return MulAdd(NegMulAdd(second, Set1(*sum), dot), scale, s);  // the inner one is exact
    } else if constexpr (kScaling == Scaling::kMins) {
      return MulAdd(Set1(*sum), second, MulAdd(dot, scale, s));
    } else {
      return MulAdd(dot, scale, s);
    }
  }
};

// The numbers of a block itself.
template <Scaling kScaling>
struct BlockNumbers {
  Vec scale, min_scale;
  const int8_t* min_parts;
  int64_t groups;

  GODWIT_INLINE BlockNumbers(const uint8_t* numbers, int64_t column, int64_t groups_of_block)
      : groups(groups_of_block) {
    scale = IsNested(kScaling) ? Load(Halves(numbers, 0) + column) : Zero();
    min_scale = kScaling == Scaling::kNestedMins ? Load(Halves(numbers, 1) + column) : Zero();
    min_parts = reinterpret_cast<const int8_t*>(numbers) + 2 * kHalvesBytes + 2 * column;
  }

  // x with a block whose groups are in s.
  GODWIT_INLINE Vec Fold(Vec s, float a_scale, const int16_t* sums, Vec x) const {
    const Vec a = Set1(a_scale);
    x = MulAdd(IsNested(kScaling) ? Mul(s, scale) : s, a, x);
    if constexpr (kScaling == Scaling::kNestedMins) {
      Vec mins = Zero();
      for (int64_t group = 0; group < groups; group += 2) {
        const Vec pairs = LoadWords(min_parts + group * kPanelColumns);
        mins = AddPairProducts(pairs, BroadcastWord(sums + group), mins);
      }
      x = NegMulAdd(Mul(IntsToFloats(mins), min_scale), a, x);
    }
    return x;
  }
};

template <class Operand, Scaling kScaling, int R, int N>
__attribute__((noinline)) void RunGroupTile(const GroupTile& tile) {
  const GroupSizes& sizes = tile.sizes;
  const int64_t column = tile.column;
  Ahead ahead = tile.ahead;
  GroupRows rows = tile.rows;
  const uint8_t* block = tile.blocks;
  for (int64_t b = 0; b < tile.count; ++b) {
    const int16_t* block_sums = rows.sums;
    Stack<R, N> s;
    ForAll([&](int64_t, int64_t, Vec& to) GODWIT_INLINE_LAMBDA { to = Zero(); }, s);
    for (int64_t g = 0; g < sizes.groups; ++g) {
      Stack<R, N> ints;
      const uint8_t* group = block + g * sizes.group_bytes;
      Dots<Operand, R == 1 && kByTurns<kScaling>>(sizes, rows, group + column * 4, ahead, ints);
      ForColumns(
          [&](int64_t i) GODWIT_INLINE_LAMBDA {
            return GroupNumbers<kScaling>(group + sizes.code_bytes, column + i * kLanes);
          },
          [&](int64_t r, int64_t, const auto& of, Vec& dots, Vec& chain) GODWIT_INLINE_LAMBDA {
            chain = of.Fold(dots, rows.sums + r * rows.sums_stride, chain);
          },
          ints, s);
      rows.a += sizes.group;
      ++rows.sums;
    }
    ForColumns(
        [&](int64_t i) GODWIT_INLINE_LAMBDA {
          return BlockNumbers<kScaling>(block + sizes.groups_bytes, column + i * kLanes,
                                        sizes.groups);
        },
        [&](int64_t r, int64_t i, const auto& of, Vec& chain) GODWIT_INLINE_LAMBDA {
          float* to = tile.x + r * kPanelColumns + i * kLanes;
          Store(to, of.Fold(chain, rows.scales[r * rows.scales_stride],
                            block_sums + r * rows.sums_stride, Load(to)));
        },
        s);
    ++rows.scales;
    block += sizes.block_bytes;
  }
}

// The tiles of a kind of weights.
struct GroupTiles {
  void (*run[kGroupTileRows])(const GroupTile&);  // of 1, 2 and 3 rows
  int64_t fetch_inputs;                           // with so many they fetch ahead once
};
template <class Operand, Scaling kScaling>
constexpr GroupTiles kGroupTiles = {.run = {RunGroupTile<Operand, kScaling, 1, GroupTileVecs(1)>,
                                            RunGroupTile<Operand, kScaling, 2, GroupTileVecs(2)>,
                                            RunGroupTile<Operand, kScaling, 3, GroupTileVecs(3)>},
                                    .fetch_inputs = (Operand::kPhases > 1 ? 2 : 1) * kQuad};

}  // namespace
}  // namespace godwit::kernels
