// A tile of rows through a panel: the activations are brought into the form that the register tile
// multiplies, some steps at a time. Include after one of vec/*.h.
#pragma once

#include "kernels/gemm/tile-inl.h"

namespace godwit::kernels {
namespace {

// At most kTileRows rows of activations.
template <class Operand>
struct SourceRows {
  const typename Operand::Source* data;
  int64_t stride;  // elements
  int64_t rows;
};

// What `tile` says, but for its `a`, which is made of `source`.
template <class Operand>
GODWIT_INLINE void RunRows(SourceRows<Operand> source, TileArgs<Operand> tile) {
  typename Operand::Prepared buffer;
  const float* const bias = tile.bias;
  int64_t left = tile.steps;
  tile.a_stride = Operand::Stride(source.stride);
  do {
    tile.steps = left < Operand::kMostSteps ? left : Operand::kMostSteps;
    left -= tile.steps;
    tile.a = Operand::Prepare(source.data, source.stride, source.rows, tile.steps, buffer);
    tile.bias = left == 0 ? bias : nullptr;
    RunColumns<Operand>(source.rows, kPanelColumns, tile);
    tile.resume = true;
    tile.w += tile.steps * tile.w_stride;
    source.data += tile.steps * Operand::kDepth;
  } while (left > 0);
}

}  // namespace
}  // namespace godwit::kernels
