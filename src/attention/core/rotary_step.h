// The rotary tables of one step.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/core/position.h"
#include "ops/rotary.h"

namespace godwit {

// Cosines, sines and temperatures of neighbouring positions. Reuses its memory.
class RotaryStep {
 public:
  // Row i: of position first + i.
  void Fill(const RotaryEncoding& encoding, int64_t rows, int64_t first);
  // Row i: the mean of the positions in tile first_tile + i of a text.
  void FillMeans(const RotaryEncoding& encoding, int64_t first_tile, int64_t tiles);
  // One row: the rotation that a key at the position `from` lacks at the position `to`.
  void FillTurn(const RotaryEncoding& encoding, int64_t from, int64_t to);

  ops::RotaryTable table() const { return Table(rows_, /*stride=*/1); }
  // The table of one position, as if `rows` tokens stood there.
  ops::RotaryTable TableForAll(int64_t rows) const;

 private:
  // Memory for so many rows: cosines, then sines [2 * rows, pairs].
  MatrixView<float> Resize(const RotaryEncoding& encoding, int64_t rows);
  // stride: from one row to the next, in rows.
  ops::RotaryTable Table(int64_t rows, int64_t stride) const;

  int64_t rows_ = 0;
  int64_t pairs_ = 0;
  bool scales_queries_ = false;
  std::vector<float> values_;  // cosines [rows, pairs], then sines, then temperatures [rows]
};

}  // namespace godwit
