// The matrix product by tile registers: 16 rows times a panel's 64 columns, 64 bytes of a row at a
// time, whose columns lie in a panel as a tile register wants them. Include after vec/avx512.h.
#pragma once

#include "kernels/gemm/rows-inl.h"
#include "kernels/tiles_amx-inl.h"

namespace godwit::kernels {
namespace {

// Sections of a panel that several tiles of rows go through before the next: they stay in the
// first-level cache meanwhile.
constexpr int64_t kPassSections = 8;

// All tiles of rows through neighbouring sections of a panel; each fetches its share of the
// sections from `ahead` on. The stride is in bytes.
template <class Product>
void RunSections(const TiledRows& of, const uint8_t* a, int64_t a_stride, const uint8_t* w,
                 int64_t sections, bool resume, const uint8_t* ahead, float* sums) {
  FetchInOrder fetch = {.ahead = ahead, .share = of.SharePerProduct()};
  for (int64_t tile = 0; tile < of.tiles; ++tile) {
    const uint8_t* rows = a + of.First(tile) * a_stride;
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

// At most kBlockRows rows, whose elements are A.
template <class Product, class A, class Finish>
void RunBlock(const GemmArgs& args, Finish finish) {
  const TiledRows of = {.rows = args.rows};
  const TileShapes shapes(of.height);
  const auto* a = static_cast<const uint8_t*>(args.a);
  const int64_t a_stride = args.a_stride * int64_t{sizeof(A)};
  const int64_t depth = args.k * int64_t{sizeof(A)};
  const int64_t sections = depth / kSectionDepth;
  const int64_t rest = (depth % kSectionDepth + kQuad - 1) / kQuad;  // steps
  const int64_t panel_bytes = sections * kSectionBytes + rest * kStepBytes;
  const int64_t most = of.tiles == 1 ? sections : kPassSections;
  // What is left of the rows and of a panel, with zeros behind it.
  alignas(64) uint8_t last_rows[kBlockRows * kSectionDepth];
  alignas(64) uint8_t last_section[kSectionBytes];
  if (rest > 0) {
    __builtin_memset(last_rows, 0, sizeof(last_rows));
    __builtin_memset(last_section, 0, sizeof(last_section));
    for (int64_t row = 0; row < args.rows; ++row) {
      __builtin_memcpy(last_rows + row * kSectionDepth,
                       a + row * a_stride + sections * kSectionDepth, rest * kQuad);
    }
  }
  alignas(64) float sums[kBlockRows * kPanelColumns];
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const uint8_t* panel = static_cast<const uint8_t*>(args.w) + p * panel_bytes;
    for (int64_t begin = 0; begin < sections; begin += most) {
      const int64_t n = sections - begin < most ? sections - begin : most;
      const uint8_t* w = panel + begin * kSectionBytes;
      RunSections<Product>(of, a + begin * kSectionDepth, a_stride, w, n, begin > 0,
                           w + (of.tiles == 1 ? kAheadBytes : n * kSectionBytes), sums);
    }
    if (rest > 0) {
      __builtin_memcpy(last_section, panel + sections * kSectionBytes, rest * kStepBytes);
      RunSections<Product>(of, last_rows, kSectionDepth, last_section, 1, sections > 0,
                           panel + panel_bytes, sums);
    }
    const int64_t column = p * kPanelColumns, columns = ColumnsFrom(column, args.columns);
    for (int64_t row = 0; row < args.rows; ++row) {
      finish(args, row, column, columns, sums + of.SumsOf(row) * kPanelColumns);
    }
  }
}

// The product of rows whose elements are A; k > 0. finish(args, row, column, columns, sums) turns
// sums [columns] of a row into that much of the row of `out`.
template <class Product, class A, class Finish>
void RunPanelsByTiles(GemmArgs args, Finish finish) {
  const int64_t rows = args.rows;
  for (int64_t row = 0; row < rows; row += kBlockRows) {
    args.rows = rows - row < kBlockRows ? rows - row : kBlockRows;
    RunBlock<Product, A>(args, finish);
    args.a = static_cast<const A*>(args.a) + args.rows * args.a_stride;
    args.out += args.rows * args.out_stride;
    if constexpr (sizeof(A) == 1) {
      args.a_scales += args.rows;
      args.a_sums += args.rows;
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
