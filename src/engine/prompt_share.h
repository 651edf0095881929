// PromptShare: the number of prompt rows in a step beside texts that are being written. It bounds
// the wait of those texts: with a slowdown of 2 their tokens come on average at most twice as far
// apart.
//
// Every step of writers may take `slowdown` times what it takes alone. Time that it does not need
// is saved, and rows are paid for by the time last measured for a row. Behind a long context few
// rows take longer than a whole step of the writers. Prompts then sit out the steps that pay for
// them. The time at which rows come changes no result.
#pragma once

#include <cstdint>

namespace godwit {

// Throws Error(kInput) for a slowdown that is neither 0 nor 1.1 to 100.
void CheckPromptSlowdown(double slowdown);

class PromptShare {
 public:
  // slowdown: more than 1; 0: prompts come first.
  explicit PromptShare(double slowdown) : slowdown_(slowdown) {}

  // The rows of prompts in a step that continues so many texts: up to `most`, 0 in a step that they
  // sit out.
  int64_t Rows(int64_t writers, int64_t most);

  // Records that the step of the last Rows took so long, with so many rows of prompts.
  void RecordStep(double ms, int64_t prompt_rows);

 private:
  // Whether the writers are others than those whose step was measured.
  bool WritersChanged(int64_t writers) const;

  double slowdown_;
  int64_t writers_ = 0;
  int64_t measured_writers_ = 0;  // number of writers in the step of alone_ms_; 0: not known
  double alone_ms_ = 0;
  int64_t steps_ = 0;  // steps since alone_ms_ was measured
  double row_ms_ = 0;  // 0: not known
  int64_t last_rows_ = 0;
  double credit_ms_ = 0;  // time that prompts have earned, beyond the step to come
};

}  // namespace godwit
