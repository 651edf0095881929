// The rotary tables of one step.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/position.h"
#include "ops/rotary.h"

namespace godwit {

// Cosines and sines of neighbouring positions. Reuses its memory.
class RotaryStep {
 public:
  // Row i: of position first + i.
  void Fill(const RotaryEncoding& encoding, int64_t rows, int64_t first);

  ops::RotaryTable table() const { return Table(rows_, pairs_); }
  // Of one position, as if `rows` tokens stood there.
  ops::RotaryTable TableForAll(int64_t rows) const;

 private:
  ops::RotaryTable Table(int64_t rows, int64_t stride) const;

  int64_t rows_ = 0;
  int64_t pairs_ = 0;
  std::vector<float> values_;  // cosines [rows, pairs], then sines
};

}  // namespace godwit
