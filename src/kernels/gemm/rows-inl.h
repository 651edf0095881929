// A tile of rows through a panel: the activations are brought into the form that the register tile
// multiplies, some steps at a time. Include after one of vec/*.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// What memory delivers to a core while it is waited for: 16 GB/s times 150 ns. From 4 KiB on, where
// every line lies in another page than what is read, fetching ahead gains next to nothing.
constexpr int64_t kAheadBytes = 2560;

// At most kTileRows rows of activations.
template <class Operand>
struct SourceRows {
  const typename Operand::Source* data;
  int64_t stride;  // elements
  int64_t rows;
};

// How far ahead of the product the panel is fetched, in its elements. Where tiles side by side go
// through it, each reads a strip of every step, in strides that no processor foresees: they fetch
// the steps that come after them all. Where one tile reads it in order, the processor foresees
// some, but stops at the end of every page of memory.
template <class Operand>
GODWIT_INLINE int64_t ElementsAhead(int64_t rows, int64_t w_stride) {
  const bool in_order = rows == 1 || kTileVecs * kLanes == kPanelColumns;
  return in_order ? kAheadBytes / int64_t{sizeof(typename Operand::W)}
                  : Operand::kMostSteps * w_stride;
}

// What `tile` says, but for its `a`, which is made of `source`, and for `ahead`.
template <class Operand>
GODWIT_INLINE void RunRows(SourceRows<Operand> source, TileArgs<Operand> tile) {
  typename Operand::Prepared buffer;
  const int64_t ahead = ElementsAhead<Operand>(source.rows, tile.w_stride);
  const float* const bias = tile.bias;
  int64_t left = tile.steps;
  tile.a_stride = Operand::Stride(source.stride);
  do {
    tile.steps = left < Operand::kMostSteps ? left : Operand::kMostSteps;
    left -= tile.steps;
    tile.a = Operand::Prepare(source.data, source.stride, source.rows, tile.steps, buffer);
    tile.bias = left == 0 ? bias : nullptr;
    tile.ahead = tile.w + ahead;
    RunColumns<Operand>(source.rows, kPanelColumns, tile);
    tile.resume = true;
    tile.w += tile.steps * tile.w_stride;
    source.data += tile.steps * Operand::kDepth;
  } while (left > 0);
}

}  // namespace
}  // namespace godwit::kernels
