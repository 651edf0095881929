// PredictionStep: the attention of a layer that predicts tokens (AttentionGeometry::predicting),
// row by row behind one text. A step changes nothing: its keys lie behind the text's end, and are
// gone when it ends.
//
// No policy knows the layer. Where the policy shows the whole text, it sees all of it. Else it sees
// the first tile and the last kWindow tokens, as far as the text has them. The first tile then
// stands as if the tokens between were missing. It never sees positions before
// AttentionGeometry::predicting_from.
#pragma once

#include <cstdint>

#include "attention/core/rotary_step.h"
#include "attention/core/step.h"
#include "attention/core/text_cache.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

class PredictionStep {
 public:
  static constexpr int64_t kWindow = 4096;

  // Reserves memory for `rows` rows behind the text, on one rank. Throws Error(kMemory) with
  // everything as it was.
  PredictionStep(const Exec& exec, TextCache& text, int64_t rows);
  ~PredictionStep();
  PredictionStep(const PredictionStep&) = delete;
  PredictionStep& operator=(const PredictionStep&) = delete;

  // Caches k and v of the next row, and attends: out [1, heads * value_dim]. input: one row.
  void Attend(const AttentionInput& input, MatrixView<float> out);

 private:
  // The keys before a gap, and those from its end on.
  struct Seen {
    int64_t first_end;
    int64_t begin;
  };
  Seen SeenFrom(int64_t position) const;
  void WriteKeys(const AttentionInput& input);
  ops::AttentionSource SourceOf(const AttentionInput& input, const ops::Visible& visible,
                                const ops::RotaryTable& positions) const;

  Exec exec_;
  TextCache& text_;
  int64_t layer_;
  int64_t rotary_;
  int64_t next_ = 0;    // rows so far
  RotaryStep rotated_;  // positions of the rows
  RotaryStep tiles_;    // with KvLayout::centred
  RotaryStep place_;    // of a query before the gap
};

}  // namespace godwit
