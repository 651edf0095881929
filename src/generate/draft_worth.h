// What a source of guesses takes and saves, as measured: one that loses rests for a while.
#pragma once

#include <cstdint>

namespace godwit {

class DraftWorth {
 public:
  bool rests() const { return rest_ > 0; }
  // What it took in a step when it was last tried; 0 before.
  double ms_a_step() const { return ms_a_step_; }
  // Time that the source took.
  void Spend(double ms) { spent_ms_ += ms; }
  // Of a step that took so long, what its guesses saved of the time without them.
  void EndStep(double step_ms, double saved_ms);

 private:
  double ms_a_step_ = 0;
  double spent_ms_ = 0, saved_ms_ = 0, step_ms_ = 0;
  int64_t steps_ = 0;  // of the trial in progress
  int64_t rest_ = 0;   // steps that are left of it
  int64_t next_rest_ = 0;
};

}  // namespace godwit
