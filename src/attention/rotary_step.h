// The rotary tables of one step, and the rotations that policies make with them.
#pragma once

#include <vector>

#include "attention/geometry.h"
#include "ops/rotary.h"

namespace godwit {

// Cosines and sines of the tokens of a step, kept from Begin to End. Reuses its memory.
class RotaryStep {
 public:
  // Token i stands at position first + i.
  void Fill(const RotaryEncoding& encoding, int64_t tokens, int64_t first);
  // All tokens stand at one position.
  void FillConstant(const RotaryEncoding& encoding, int64_t tokens, int64_t position);

  ops::RotaryTable table() const;

 private:
  int64_t tokens_ = 0;
  int64_t rows_ = 0;  // that are stored: one for each token, or one for all
  int64_t pairs_ = 0;
  std::vector<float> values_;  // cosines [rows, pairs], then sines
};

// Rotated copies in head-major order, in the workspace: queries [tokens * heads, head_dim] and
// keys [tokens * kv_heads, head_dim].
MatrixView<const float> RotateQueries(const Exec& exec, const ops::AttentionShape& shape,
                                      MatrixView<const float> q, const RotaryStep& step);
MatrixView<const float> RotateKeys(const Exec& exec, const ops::AttentionShape& shape,
                                   MatrixView<const float> k, const RotaryStep& step);

}  // namespace godwit
