// The matrix product by tile registers: 16 rows times a panel's 64 columns, 64 bytes of a row at a
// time. Columns lie in a panel as a tile register wants them. Include after vec/avx512.h.
#pragma once

#include "kernels/gemm/rows-inl.h"
#include "kernels/tiles_amx-inl.h"

namespace godwit::kernels {
namespace {

// Sections of a panel that several tiles of rows go through before the next: they stay in the
// first-level cache meanwhile.
constexpr int64_t kPassSections = 8;

// Tiles of rows that go through a pass together: their sums stay in that cache, too.
constexpr int64_t kPassTiles = 6;

constexpr int64_t kSectionLines = kSectionBytes / kTileBytes;

// The memory that a tile of rows fetches while it goes through a section, a quarter at each call.
// It is the rest of its rows behind the next section, and some lines of every section that comes
// later.
struct FetchOfTile {
  const uint8_t* rows;  // null: they stay in the first-level cache
  int64_t stride;       // bytes
  const uint8_t* section;
  int64_t lines;  // of each
  int64_t call = 0;

  GODWIT_INLINE void operator()() {
    constexpr int64_t kRows = kMaxTileRows / 4;
    for (int64_t row = call * kRows; rows != nullptr && row < (call + 1) * kRows; ++row) {
      __builtin_prefetch(rows + row * stride, /*for writing=*/0, 3);
    }
    const int64_t begin = lines * call / 4, end = lines * (call + 1) / 4;
    FetchLines(section + begin * kTileBytes, (end - begin) * kTileBytes);
    if (++call < 4) return;
    call = 0;
    section += kSectionBytes;
    if (rows != nullptr) rows += kSectionDepth;
  }
};

// Sections that the tiles of a pass fetch while they go through others, each a share of every one.
struct AheadSections {
  const uint8_t* begin;
  int64_t first_share;  // that of the first tile
  int64_t shares;       // by which a section is divided; 0: nothing is fetched

  // rows: those that the tile reads behind its first section.
  FetchOfTile OfTile(int64_t tile, const uint8_t* rows, int64_t stride) const {
    FetchOfTile fetch = {.rows = rows, .stride = stride, .section = begin, .lines = 0};
    if (shares == 0) return fetch;
    const int64_t share = first_share + tile;
    const int64_t line = kSectionLines * share / shares;
    fetch.section += line * kTileBytes;
    fetch.lines = kSectionLines * (share + 1) / shares - line;
    return fetch;
  }
};

// Some tiles of rows, at most kPassTiles, through neighbouring sections of a panel. The stride is
// in bytes.
template <class Product>
void RunSections(const TiledRows& of, int64_t first, int64_t tiles, const uint8_t* a,
                 int64_t a_stride, const uint8_t* w, int64_t sections, bool resume,
                 const AheadSections& ahead, float* sums) {
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const uint8_t* rows = a + of.First(first + tile) * a_stride;
    FetchOfTile fetch =
        ahead.OfTile(tile, of.tiles == 1 ? nullptr : rows + kSectionDepth, a_stride);
    float* const to = sums + tile * of.height * kPanelColumns;
    if (resume) {
      LoadSums(to);
    } else {
      ZeroSums();
    }
    for (int64_t section = 0; section < sections; ++section) {
      AddSection<Product>(rows + section * kSectionDepth, a_stride, w + section * kSectionBytes,
                          kStepBytes, fetch);
    }
    StoreSums(to);
  }
}

// The panels of a product by tiles, and the rows that go through them.
template <class A>
struct TiledPanels {
  const GemmArgs& args;
  const TiledRows& of;
  int64_t sections = args.k * int64_t{sizeof(A)} / kSectionDepth;
  int64_t rest = (args.k * int64_t{sizeof(A)} % kSectionDepth + kQuad - 1) / kQuad;  // steps
  int64_t bytes = sections * kSectionBytes + rest * kStepBytes;

  const uint8_t* Begin(int64_t panel) const {
    return static_cast<const uint8_t*>(args.w) + panel * bytes;
  }
};

// Tiles [first, first + tiles) of the rows through a panel: sums [tiles * height, kPanelColumns].
template <class Product, class A>
void RunTiles(const TiledPanels<A>& with, int64_t panel, int64_t first, int64_t tiles,
              float* sums) {
  const GemmArgs& args = with.args;
  const TiledRows& of = with.of;
  const auto* a = static_cast<const uint8_t*>(args.a);
  const int64_t a_stride = args.a_stride * int64_t{sizeof(A)};
  const int64_t sections = with.sections;
  const uint8_t* const w = with.Begin(panel);
  const int64_t most = of.tiles == 1 ? sections : kPassSections;
  for (int64_t begin = 0; begin < sections; begin += most) {
    const int64_t n = sections - begin < most ? sections - begin : most;
    const uint8_t* at = w + begin * kSectionBytes;
    // The same sections of the next panel, shared by all tiles.
    AheadSections ahead = {.begin = at + with.bytes, .first_share = first, .shares = of.tiles};
    if (of.tiles == 1) {
      ahead.begin = at + kAheadBytes;
    } else if (of.tiles <= kPassTiles || (panel == args.panel_begin && first == 0)) {
      // No others fetch it.
      ahead = {.begin = at + n * kSectionBytes, .first_share = 0, .shares = tiles};
    } else if (panel + 1 == args.panel_end) {
      ahead.shares = 0;
    }
    RunSections<Product>(of, first, tiles, a + begin * kSectionDepth, a_stride, at, n, begin > 0,
                         ahead, sums);
  }
  if (with.rest == 0) return;
  // The rest of the rows and of the panel, with zeros behind it.
  alignas(64) uint8_t last_rows[kPassTiles * kMaxTileRows * kSectionDepth];
  alignas(64) uint8_t last_section[kSectionBytes];
  __builtin_memset(last_rows, 0, sizeof(last_rows));
  __builtin_memset(last_section, 0, sizeof(last_section));
  __builtin_memcpy(last_section, w + sections * kSectionBytes, with.rest * kStepBytes);
  for (int64_t tile = 0; tile < tiles; ++tile) {
    for (int64_t row = 0; row < of.height; ++row) {
      __builtin_memcpy(last_rows + (tile * of.height + row) * kSectionDepth,
                       a + (of.First(first + tile) + row) * a_stride + sections * kSectionDepth,
                       with.rest * kQuad);
    }
  }
  const TiledRows rest = {.rows = tiles * of.height, .tiles = tiles, .height = of.height};
  RunSections<Product>(rest, 0, tiles, last_rows, kSectionDepth, last_section, 1, sections > 0,
                       {.begin = w, .first_share = 0, .shares = 0}, sums);
}

struct PastCaches {
  static GODWIT_INLINE void Put(float* p, Vec x) { StorePastCaches(p, x); }
};

// An `out` that would push rows and panels out of the second-level cache is written past it. Into
// it, 512 rows of k = 2048 took a quarter more time.
GODWIT_INLINE bool WritesPastCaches(const GemmArgs& args) {
  constexpr int64_t kLargeBytes = 1 << 20;
  const int64_t columns = (args.panel_end - args.panel_begin) * kPanelColumns;
  return args.rows * columns * int64_t{sizeof(float)} >= kLargeBytes &&
         reinterpret_cast<uintptr_t>(args.out) % kTileBytes == 0 && args.out_stride % kLanes == 0;
}

// Multiplies rows whose elements are A; k > 0. finish.operator()<Write>(args, row, column, columns,
// sums) turns sums [columns] of a row into that much of the row of `out`. All rows go through a
// panel while it stays in the second-level cache, and fetch the next one: none of them waits for
// memory.
template <class Product, class A, class Finish>
void RunPanelsByTiles(const GemmArgs& args, Finish finish) {
  if (args.rows == 0) return;
  const TiledRows of = {.rows = args.rows};
  const TileShapes shapes(of.height);
  const TiledPanels<A> with = {.args = args, .of = of};
  const bool past_caches = WritesPastCaches(args);
  alignas(64) float sums[kPassTiles * kMaxTileRows * kPanelColumns];
  for (int64_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
    const int64_t column = panel * kPanelColumns, columns = ColumnsFrom(column, args.columns);
    for (int64_t first = 0; first < of.tiles; first += kPassTiles) {
      const int64_t tiles = of.tiles - first < kPassTiles ? of.tiles - first : kPassTiles;
      RunTiles<Product>(with, panel, first, tiles, sums);
      const float* of_row = sums;
      for (int64_t tile = first; tile < first + tiles; ++tile) {
        for (int64_t i = 0; i < of.height; ++i, of_row += kPanelColumns) {
          const int64_t row = of.First(tile) + i;
          if (past_caches) {
            finish.template operator()<PastCaches>(args, row, column, columns, of_row);
          } else {
            finish.template operator()<IntoCaches>(args, row, column, columns, of_row);
          }
        }
      }
    }
  }
  if (past_caches) FenceStores();
}

}  // namespace
}  // namespace godwit::kernels
