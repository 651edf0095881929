// The inputs of a causal convolution on the grid of tiles (state_piece.h). They are the kept rows
// of a tile's positions, and behind a tile's beginning in its state the last rows before it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "kernels/kernel_table.h"
#include "ops/state_piece.h"

namespace godwit::ops {

// The most taps: a state is made from the rows of one tile.
inline constexpr int64_t kMaxConvolutionTaps = 65;

// rows [taps]: the inputs of row `i` of the piece, the oldest position's first. before: the rows
// [taps - 1, width] in the state at the tile's beginning.
inline void FindInputs(const StatePiece& piece, int64_t i, int64_t taps, const float* before,
                       int64_t width, const float** rows) {
  const int64_t oldest = std::ssize(piece.kept) - piece.rows + i - (taps - 1);
  for (int64_t j = 0; j < taps; ++j) {
    const int64_t at = oldest + j;  // in the tile, or before it
    rows[j] = at >= 0 ? piece.kept[at] : before + (at + taps - 1) * width;
  }
}

// Columns [first, last) of the last taps - 1 rows of a whole tile, to a state's rows `to`.
inline void KeepLastInputs(const StatePiece& piece, int64_t taps, int64_t width, int64_t first,
                           int64_t last, float* to) {
  for (int64_t j = 0; j < taps - 1; ++j) {
    const float* const kept = piece.kept[kernels::kTileTokens - (taps - 1) + j];
    std::copy(kept + first, kept + last, to + j * width + first);
  }
}

}  // namespace godwit::ops
