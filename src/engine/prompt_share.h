// How many rows of prompts go into a step beside texts that are being written, so that what these
// wait for is bounded: with a slowdown of 2 their tokens come on average at most twice as far apart
// as they would without.
//
// Every step of writers may take `slowdown` times what it takes alone. What it does not need is
// saved, and rows are paid for by what a row was last measured to take. Behind a long context few
// rows take longer than a whole step of the writers; then prompts sit out the steps that pay for
// them. Which rows come when changes no result.
#pragma once

#include <cstdint>

namespace godwit {

// Throws Error(kInput) for one that is neither 0 nor 1.1 to 100.
void CheckPromptSlowdown(double slowdown);

class PromptShare {
 public:
  // slowdown: more than 1; 0: prompts come first.
  explicit PromptShare(double slowdown) : slowdown_(slowdown) {}

  // Rows of prompts in a step that continues so many texts: up to `most`, 0 in one that they sit
  // out.
  int64_t Rows(int64_t writers, int64_t most);

  // The step that Rows was last asked about took so long, with so many rows of prompts.
  void Took(double ms, int64_t prompt_rows);

 private:
  // Than those whose step was measured.
  bool AreOthers(int64_t writers) const;

  double slowdown_;
  int64_t writers_ = 0;
  int64_t measured_writers_ = 0;  // whose step alone_ms_ is; 0: it is not known
  double alone_ms_ = 0;
  int64_t steps_ = 0;  // since that was measured
  double row_ms_ = 0;  // 0: not known
  int64_t last_rows_ = 0;
  double credit_ms_ = 0;  // that prompts have earned, beyond the step to come
};

}  // namespace godwit
