// StatePiece: rows of a step as a recurrent layer sees them: consecutive positions of one text, in
// one tile.
//
// A recurrent layer remembers its state at a tile's beginning, and a row of each position of the
// tile since then. The output of a position is a function of these, in one order of additions: the
// grid. Therefore it has the same bits whether the tile is read at once or token by token. The
// state at a tile's end is made from the state at its beginning and all of its rows.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::ops {

struct StatePiece {
  int64_t first_row;   // of the step
  int64_t rows;        // at least 1
  const float* begin;  // [floats]: the state at the tile's beginning
  // The rows [row_floats] of the tile's positions, from its beginning to the piece's last one. The
  // last `rows` of them are the piece's own, and are to be written.
  std::span<float* const> kept;
  // [floats]: the state at the tile's end, to be written; null: the piece ends within the tile. It
  // may be where `begin` is.
  float* end;
};

// Pieces of a layer come in order: what one writes, a later one may read. A core takes some of the
// columns, or heads, of all pieces.

}  // namespace godwit::ops
