// The product with grouped weights by tile registers: 16 rows, and the integers of a group in an
// accumulator. Include after vec/avx512.h.
#pragma once

#include "kernels/gemm/groups-inl.h"
#include "kernels/tiles_amx-inl.h"

namespace godwit::kernels {
namespace {

// The operands to which codes are unpacked. Codes that have a centre become signed bytes less it. A
// product then has the integers of the definition, and no row has a sum to take off.
struct UnsignedNibbles : NibbleOperand<FetchedFar> {
  static constexpr bool kSigned = false;
};
struct FetchedCodes : FetchedFar {
  static constexpr CodeForm kForm = CodeForm::kUnsigned;
};
struct UnsignedBytes : ByteOperand<FetchedCodes> {
  static constexpr bool kSigned = false;
};
struct SignedTable : TableOperand<FetchedFar> {
  static constexpr bool kSigned = true;
};
template <Codes kCodes>
struct UnsignedPlanes : PlaneOperand<kCodes, FetchedFar> {
  static constexpr bool kSigned = false;
};
template <Codes kCodes, class Unsigned>
struct Signed {
  static constexpr bool kSigned = true;
  static constexpr int kPhases = Unsigned::kPhases;
  static constexpr int kLines = Unsigned::kLines;
  template <int kPhase>
  static GODWIT_INLINE Vec Column(const uint8_t* w, Vec table) {
    constexpr uint32_t kLess = (256 - Centre({.codes = kCodes})) * 0x01010101u;
    return AddBytes(Unsigned::template Column<kPhase>(w, table),
                    Set1Ints(static_cast<int32_t>(kLess)));
  }
};

// Unpacks kLanes columns, a quad of each after the other.
template <class Packed, int kPhase = 0>
GODWIT_INLINE void UnpackColumns(const uint8_t* from, Vec table, uint8_t* to) {
  if constexpr (kPhase < Packed::kPhases) {
    Store(reinterpret_cast<float*>(to), Packed::template Column<kPhase>(from, table));
    UnpackColumns<Packed, kPhase + 1>(from, table, to + kLineBytes);
  }
}

// Lines of codes to bytes, a quad of all columns after the other.
template <class Packed>
GODWIT_INLINE void UnpackCodes(const GroupSizes& sizes, const uint8_t* codes, uint8_t* to) {
  const Vec table = Load(reinterpret_cast<const float*>(sizes.table));
  for (int64_t run = 0; run < sizes.code_bytes; run += Packed::kLines * kLineBytes) {
    for (int64_t i = 0; i < kLineBytes; i += 4 * kLanes) {
      UnpackColumns<Packed>(codes + run + i, table, to + i);
    }
    to += Packed::kPhases * kLineBytes;
  }
}

// Blocks, with bytes in the place of codes.
template <class Packed>
void UnpackBlocks(const GroupSizes& sizes, const uint8_t* blocks, int64_t count, uint8_t* to) {
  const uint8_t* from = blocks;
  const auto copy = [&](int64_t bytes) {
    __builtin_memcpy(to, from, static_cast<size_t>(bytes));
    from += bytes;
    to += bytes;
  };
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t group = 0; group < sizes.groups; ++group) {
      UnpackCodes<Packed>(sizes, from, to);
      from += sizes.code_bytes;
      to += sizes.group * kPanelColumns;
      copy(sizes.group_bytes - sizes.code_bytes);
    }
    copy(sizes.block_bytes - sizes.groups_bytes);
  }
}

// Some rows through a block whose codes are bytes.
struct TiledBlock {
  const GroupSizes& sizes;  // of unpacked blocks
  GroupRows rows;           // from the block on
  int64_t height;
  const uint8_t* bytes;
  float* x;              // [height, kPanelColumns]: sums that go on
  const uint8_t* ahead;  // what is fetched
  int64_t share;         // of it, behind each product
};

// Inputs of a group that a product takes.
GODWIT_INLINE int64_t ProductDepth(const GroupSizes& sizes) {
  return sizes.group < kSectionDepth ? sizes.group : kSectionDepth;
}

// Four products: kStrips times kLanes columns of a group, and of those behind it.
template <bool kSigned, int kStrips, int kSum = 0>
GODWIT_INLINE void AddGroups(const TiledBlock& of, int64_t group, int64_t column, int64_t input,
                             const uint8_t*& ahead) {
  constexpr int kGroup = kSum / kStrips, kStrip = kSum % kStrips;
  constexpr int kRows = kRowTile + kGroup % 2, kColumns = kRowTile + 2 + kSum % 2;
  const int64_t place = group + kGroup;
  if constexpr (kStrip == 0) {
    LoadTile<kRows>(of.rows.a + place * of.sizes.group + input, of.rows.a_stride);
  }
  LoadTile<kColumns>(of.bytes + place * of.sizes.group_bytes + input * kPanelColumns +
                         (column + kStrip * kLanes) * kQuad,
                     kStepBytes);
  if constexpr (kSigned) {
    AddSignedBySigned<kSum, kRows, kColumns>();
  } else {
    AddSignedByUnsigned<kSum, kRows, kColumns>();
  }
  FetchLines(ahead, of.share);
  ahead += of.share;
  if constexpr (kSum < 3) AddGroups<kSigned, kStrips, kSum + 1>(of, group, column, input, ahead);
}

// The accumulators to ints [groups, kMaxTileRows, kStrips * kLanes], in the bits of floats.
template <int kStrips, int kSum = 0>
GODWIT_INLINE void StoreGroups(float* ints) {
  constexpr int kGroup = kSum / kStrips, kStrip = kSum % kStrips;
  StoreTile<kSum>(ints + (kGroup * kMaxTileRows * kStrips + kStrip) * kLanes, kStrips * kTileBytes);
  if constexpr (kSum < 3) StoreGroups<kStrips, kSum + 1>(ints);
}

// R rows from `row` on of kLanes columns: their groups folded into x. ints [groups, kMaxTileRows,
// width], from the first of the columns on.
template <Scaling kScaling, int R>
GODWIT_INLINE void FoldRows(const TiledBlock& of, const float* ints, int64_t width, int64_t row,
                            int64_t column) {
  const GroupSizes& sizes = of.sizes;
  const int16_t* sums = of.rows.sums + row * of.rows.sums_stride;
  Stack<R, 1> s;
  ForAll([&](int64_t, int64_t, Vec& to) GODWIT_INLINE_LAMBDA { to = Zero(); }, s);
  for (int64_t g = 0; g < sizes.groups; ++g) {
    const GroupNumbers<kScaling> numbers(of.bytes + g * sizes.group_bytes + sizes.code_bytes,
                                         column);
    const float* dots = ints + (g * kMaxTileRows + row) * width;
    ForAll(
        [&](int64_t r, int64_t, Vec& chain) GODWIT_INLINE_LAMBDA {
          chain = numbers.Fold(Load(dots + r * width), sums + r * of.rows.sums_stride + g, chain);
        },
        s);
  }
  const BlockNumbers<kScaling> numbers(of.bytes + sizes.groups_bytes, column, sizes.groups);
  ForAll(
      [&](int64_t r, int64_t, Vec& chain) GODWIT_INLINE_LAMBDA {
        float* to = of.x + (row + r) * kPanelColumns + column;
        Store(to, numbers.Fold(chain, of.rows.scales[(row + r) * of.rows.scales_stride],
                               sums + r * of.rows.sums_stride, Load(to)));
      },
      s);
}

template <bool kSigned, Scaling kScaling, int kStrips>
GODWIT_INLINE void RunTiledBlock(const TiledBlock& of) {
  constexpr int64_t kWidth = kStrips * kLanes;
  alignas(64) float ints[kMaxBlock / kMinGroup * kMaxTileRows * kWidth];
  const uint8_t* ahead = of.ahead;
  for (int64_t first = 0; first < kPanelColumns; first += kWidth) {
    for (int64_t g = 0; g < of.sizes.groups; g += 4 / kStrips) {
      ZeroSums();
      for (int64_t i = 0; i < of.sizes.group; i += ProductDepth(of.sizes)) {
        AddGroups<kSigned, kStrips>(of, g, first, i, ahead);
      }
      StoreGroups<kStrips>(ints + g * kMaxTileRows * kWidth);
    }
    for (int64_t c = 0; c < kWidth; c += kLanes) {
      const auto fold = [&]<int R>(int64_t row) GODWIT_INLINE_LAMBDA {
        FoldRows<kScaling, R>(of, ints + c, kWidth, row, first + c);
      };
      int64_t row = 0;
      for (; row + 8 <= of.height; row += 8) fold.template operator()<8>(row);
      for (; row + 2 <= of.height; row += 2) fold.template operator()<2>(row);
      if (row < of.height) fold.template operator()<1>(row);
    }
  }
}

// Runs a block. The accumulators hold all groups of a block, if it has no more than four, of as
// many columns as they can. The memory to which they are stored should leave space for the rest in
// the first-level cache.
template <bool kSigned, Scaling kScaling>
void RunTiledBlock(const TiledBlock& of) {
  if constexpr (MaxGroup(kScaling) == kMaxGroup) {
    if (of.sizes.groups == 1) return RunTiledBlock<kSigned, kScaling, 4>(of);
    if (of.sizes.groups == 2) return RunTiledBlock<kSigned, kScaling, 2>(of);
  }
  RunTiledBlock<kSigned, kScaling, 1>(of);
}

// The functions that multiply with weights of a format.
struct TiledKernel {
  void (*unpack)(const GroupSizes&, const uint8_t* blocks, int64_t count, uint8_t* to);
  void (*run_block)(const TiledBlock&);
  bool is_signed;
};
template <class Packed, Scaling kScaling>
constexpr TiledKernel kTiledKernel = {.unpack = UnpackBlocks<Packed>,
                                      .run_block = RunTiledBlock<Packed::kSigned, kScaling>,
                                      .is_signed = Packed::kSigned};

// Rows through a panel, x as TiledRows has them. Each block is unpacked once, and stays in the
// first-level cache while all tiles go through it and fetch the next.
GODWIT_INLINE void RunTiledPanel(const TiledKernel& kernel, const GroupSizes& sizes,
                                 const TiledRows& of, const GroupRows& rows, const uint8_t* panel,
                                 int64_t blocks, float* x) {
  const GroupSizes unpacked = sizes.Unpacked();
  const int64_t products = of.tiles * sizes.block / ProductDepth(sizes) * (kPanelColumns / kLanes);
  const int64_t share = (sizes.block_bytes / kTileBytes + products - 1) / products * kTileBytes;
  __builtin_memset(x, 0, static_cast<size_t>(of.tiles * of.height * kPanelColumns) * sizeof(float));
  alignas(64) uint8_t bytes[2 * kMaxBlock * kPanelColumns];
  for (int64_t b = 0; b < blocks; ++b) {
    const uint8_t* block = panel + b * sizes.block_bytes;
    kernel.unpack(sizes, block, 1, bytes);
    for (int64_t tile = 0; tile < of.tiles; ++tile) {
      kernel.run_block({.sizes = unpacked,
                        .rows = rows.From(of.First(tile), b, sizes),
                        .height = of.height,
                        .bytes = bytes,
                        .x = x + tile * of.height * kPanelColumns,
                        .ahead = block + sizes.block_bytes + sizes.block_bytes * tile / of.tiles,
                        .share = share});
    }
  }
}

void RunTiledPanels(const TiledKernel& kernel, const GroupGemmArgs& args) {
  const GroupSizes sizes(*args.format, kernel.is_signed ? CodeForm::kCentred : CodeForm::kUnsigned);
  const GroupRows all(args);
  const int64_t blocks = BlockCount(*args.format, args.k);
  alignas(64) float x[kBlockRows * kPanelColumns];
  for (int64_t row = 0; row < args.rows; row += kBlockRows) {
    const TiledRows of = {.rows = args.rows - row < kBlockRows ? args.rows - row : kBlockRows};
    const TileShapes shapes(of.height, /*row_tiles=*/2, ProductDepth(sizes));
    for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
      RunTiledPanel(kernel, sizes, of, all.From(row, 0, sizes),
                    static_cast<const uint8_t*>(args.w) + p * blocks * sizes.block_bytes, blocks,
                    x);
      for (int64_t r = 0; r < of.rows; ++r) {
        FinishGroups(args, row + r, p, x + of.SumsOf(r) * kPanelColumns);
      }
    }
  }
}

// Centred is what codes that have a centre are unpacked to.
template <Codes kCodes, class Centred, class Others>
GODWIT_INLINE void TiledGroupsOf(const GroupGemmArgs& args) {
  WithScaling(args, [&]<Scaling kScaling>() {
    if constexpr (!IsInUse(kCodes, kScaling)) {
      return;
    } else if constexpr (kScaling == Scaling::kCentred || kScaling == Scaling::kNested) {
      RunTiledPanels(kTiledKernel<Centred, kScaling>, args);
    } else {
      RunTiledPanels(kTiledKernel<Others, kScaling>, args);
    }
  });
}

void GemmGroupsByTiles(const GroupGemmArgs& args) {
  using Fives = UnsignedPlanes<Codes::k5>;
  using Sixes = UnsignedPlanes<Codes::k6>;
  switch (args.format->codes) {
    case Codes::k4:
      return TiledGroupsOf<Codes::k4, SignedTable, UnsignedNibbles>(args);
    case Codes::k4Table:
      return TiledGroupsOf<Codes::k4Table, SignedTable, SignedTable>(args);
    case Codes::k5:
      return TiledGroupsOf<Codes::k5, Signed<Codes::k5, Fives>, Fives>(args);
    case Codes::k6:
      return TiledGroupsOf<Codes::k6, Signed<Codes::k6, Sixes>, Sixes>(args);
    case Codes::k8:
      return TiledGroupsOf<Codes::k8, Signed<Codes::k8, UnsignedBytes>, UnsignedBytes>(args);
  }
}

}  // namespace
}  // namespace godwit::kernels
