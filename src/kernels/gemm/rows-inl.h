// Rows of activations through the panels of a weight: the loops around the register tile. Include
// after one of vec/*.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// The bytes that memory delivers to a core while it is waited for: 16 GB/s times 150 ns. From 4 KiB
// on, where every line lies in another page than the current one, fetching ahead gains next to
// nothing.
constexpr int64_t kAheadBytes = 2560;

// The most rows that go through a panel together. Their sums, 24 KiB, rest in a buffer meanwhile.
// Lines of `out` come from far, as rows of it lie in the same few cache sets.
constexpr int64_t kBlockRows = 16 * kTileRows;

// The number of a weight's columns in the panel that begins with `column`.
GODWIT_INLINE int64_t ColumnsFrom(int64_t column, int64_t columns) {
  return columns - column < kPanelColumns ? columns - column : kPanelColumns;
}

// How finished vectors are written to `out`.
struct IntoCaches {
  static GODWIT_INLINE void Put(float* p, Vec x) { Store(p, x); }
};

// Rows of activations.
template <class Operand>
struct SourceRows {
  const typename Operand::Source* data;
  int64_t stride;  // elements
  int64_t rows;
};

template <class Operand>
constexpr int64_t kStepElements = kPanelColumns* Operand::kDepth;

// A tile of rows through the steps [begin, end) of a panel, kMaxSteps at most; sums [rows,
// kPanelColumns] of the steps before, if there are any, go on.
template <class Operand, Fetch kFetch>
GODWIT_INLINE void RunSteps(SourceRows<Operand> source, const typename Operand::W* panel,
                            int64_t begin, int64_t end, const typename Operand::W* ahead,
                            float* sums) {
  typename Operand::Prepared buffer;
  RunColumns<Operand, kFetch>(
      source.rows, kPanelColumns,
      {.a = Operand::Prepare(source.data + begin * Operand::kDepth, source.stride, source.rows,
                             end - begin, buffer),
       .a_stride = Operand::Stride(source.stride),
       .w = panel + begin * kStepElements<Operand>,
       .w_stride = kStepElements<Operand>,
       .steps = end - begin,
       .resume = begin > 0,
       .out = sums,
       .out_stride = kPanelColumns,
       .ahead = ahead});
}

// Multiplies one tile of rows with a panel, and fetches ahead of the product. Where tiles side by
// side go through the panel, each reads a strip of every step, in strides that no processor
// foresees. They fetch the steps that come after them all. Where one reads it in order, the
// processor foresees some, but stops at the end of every page of memory.
template <class Operand>
void RunAlone(SourceRows<Operand> source, const typename Operand::W* panel, int64_t steps,
              float* sums) {
  const int64_t ahead = source.rows == 1 || kInOrder
                            ? kAheadBytes / int64_t{sizeof(typename Operand::W)}
                            : Operand::kMaxSteps * kStepElements<Operand>;
  int64_t begin = 0;
  do {
    const int64_t left = steps - begin;
    const int64_t end = left < Operand::kMaxSteps ? steps : begin + Operand::kMaxSteps;
    RunSteps<Operand, Fetch{}>(source, panel, begin, end,
                               panel + begin * kStepElements<Operand> + ahead, sums);
    begin = end;
  } while (begin < steps);
}

// Multiplies several tiles of rows with a panel: all go through kPassSteps of it before the next
// pass. Each fetches its share of that, so that memory is idle at no time. The tiles are even, as
// one of a few rows that are left over would keep the multipliers waiting.
template <class Operand, int64_t kPassSteps, Fetch kFetch>
void RunTogether(SourceRows<Operand> source, const typename Operand::W* panel, int64_t steps,
                 float* sums) {
  const int64_t tiles = (source.rows + kTileRows - 1) / kTileRows;
  int64_t begin = 0;
  do {
    const int64_t end = steps - begin < kPassSteps ? steps : begin + kPassSteps;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t row = source.rows * tile / tiles;
      const int64_t next_row = source.rows * (tile + 1) / tiles;
      const int64_t next_step = end + (end - begin) * tile / tiles;
      RunSteps<Operand, kFetch>({.data = source.data + row * source.stride,
                                 .stride = source.stride,
                                 .rows = next_row - row},
                                panel, begin, end, panel + next_step * kStepElements<Operand>,
                                sums + row * kPanelColumns);
    }
    begin = end;
  } while (begin < steps);
}

// At most kBlockRows rows through a panel of `steps` steps: sums [rows, kPanelColumns].
template <class Operand>
GODWIT_INLINE void RunPanel(SourceRows<Operand> source, const typename Operand::W* panel,
                            int64_t steps, float* sums) {
  if (source.rows <= kTileRows) {
    RunAlone<Operand>(source, panel, steps, sums);
  } else if (source.rows <= 2 * kTileRows && kInOrder) {
    // These wait for memory most of their time, and the less the nearer they fetch.
    RunTogether<Operand, 8, Fetch{.share = 2, .level = 1}>(source, panel, steps, sums);
  } else if (source.rows <= 2 * kTileRows) {
    RunTogether<Operand, 128, Fetch{.share = 2}>(source, panel, steps, sums);
  } else {
    RunTogether<Operand, 128, Fetch{.share = 4}>(source, panel, steps, sums);
  }
}

// The matrix product. finish(row, column, columns, sums) turns sums [columns] of a row into that
// much of the row of `out`; columns <= kPanelColumns.
template <class Operand, class Finish>
GODWIT_INLINE void RunPanels(const GemmArgs& args, Finish finish) {
  const int64_t steps = (args.k + Operand::kDepth - 1) / Operand::kDepth;
  const auto* a = static_cast<const typename Operand::Source*>(args.a);
  const auto* w = static_cast<const typename Operand::W*>(args.w);
  alignas(64) float sums[kBlockRows * kPanelColumns];
  for (int64_t p = args.panel_begin; p < args.panel_end; ++p) {
    const int64_t column = p * kPanelColumns, columns = ColumnsFrom(column, args.columns);
    for (int64_t row = 0; row < args.rows; row += kBlockRows) {
      const int64_t rows = args.rows - row < kBlockRows ? args.rows - row : kBlockRows;
      RunPanel<Operand>({.data = a + row * args.a_stride, .stride = args.a_stride, .rows = rows},
                        w + p * steps * kStepElements<Operand>, steps, sums);
      for (int64_t r = 0; r < rows; ++r) {
        finish(row + r, column, columns, sums + r * kPanelColumns);
      }
    }
  }
}

}  // namespace
}  // namespace godwit::kernels
