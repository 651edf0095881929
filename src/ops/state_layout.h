// StateLayout: the memory of recurrent layers, whose states have one size whatever the length of
// the text.
//
// A page belongs to one tile of a text, and has all recurrent layers in two parts. The first is
// their states at the tile's beginning [layers, floats]. The second is their rows of the tile's
// positions [layers, kTileTokens, row_floats]. Both are padded to whole lines of memory. A page of
// an earlier tile has the first part alone. All numbers are f32.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/kernel_table.h"

namespace godwit {

struct StateLayout {
  int64_t layers = 0;  // recurrent ones; 0: the model has none
  // The numbers of a layer's state, such as [heads, d_k, d_v] and the last rows before a short
  // convolution, and of its row of a position. Layers of several kinds take the largest.
  int64_t floats = 0;
  int64_t row_floats = 0;

  constexpr int64_t state_stride() const { return kernels::PadToLanes(floats); }
  constexpr int64_t row_stride() const { return kernels::PadToLanes(row_floats); }
  // The bytes of a page's two parts.
  constexpr int64_t state_bytes() const { return 4 * layers * state_stride(); }
  constexpr int64_t rows_bytes() const { return 4 * layers * kernels::kTileTokens * row_stride(); }

  // Whether a text whose last tile is `last` keeps the page of a tile, so that it can return there.
  // It keeps the last two pages, and the last two at every 16th and every 256th tile. A text that
  // returns by n tokens then reads again at most about 16 n.
  static constexpr int64_t kMostPages = 6;
  static constexpr int64_t kStrides[] = {1, 16, 256};
  static constexpr bool IsKept(int64_t tile, int64_t last) {
    if (tile == 0) return last <= 1;
    for (const int64_t stride : kStrides) {
      const int64_t newest = last / stride * stride;
      if (tile == newest || tile == newest - stride) return true;
    }
    return false;
  }
  // No tile before this one is kept, but for the first of a short text.
  static constexpr int64_t FirstKept(int64_t last) { return last - 2 * kStrides[2]; }
  // Whether that page keeps its rows, too. The text can then return to any position of the tile,
  // and otherwise to its beginning alone.
  static constexpr int64_t kMostRows = 2;
  static constexpr bool KeepsRows(int64_t tile, int64_t last) { return tile > last - kMostRows; }

  // The most bytes that such a text takes, with the page into which its next step may write.
  constexpr int64_t BytesFor(int64_t tokens) const {
    if (layers == 0 || tokens <= 0) return 0;
    const int64_t tiles = tokens / kernels::kTileTokens + 1;
    return (std::min(kMostPages, tiles) + 1) * state_bytes() +
           (std::min(kMostRows, tiles) + 1) * rows_bytes();
  }

  bool operator==(const StateLayout&) const = default;
};

}  // namespace godwit
