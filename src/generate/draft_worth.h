// DraftWorth: the measured cost and savings of a draft source. A source that loses rests for a
// while.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace godwit {

class DraftWorth {
 public:
  bool rests() const { return rest_ > 0; }
  // The time that the source takes in a step: of its last trial, or so far of its first one.
  double ms_per_step() const {
    return of_last_trial_ms_.value_or(spent_ms_ /
                                      static_cast<double>(std::max<int64_t>(steps_, 1)));
  }
  // Time that the source took.
  void Spend(double ms) { spent_ms_ += ms; }
  // Ends a step that took step_ms. saved_ms: the time that draft tokens saved compared with none.
  void EndStep(double step_ms, double saved_ms);

 private:
  std::optional<double> of_last_trial_ms_;  // in a step
  double spent_ms_ = 0, saved_ms_ = 0, step_ms_ = 0;
  int64_t steps_ = 0;  // steps of the trial in progress
  int64_t rest_ = 0;   // steps that are left of the rest
  int64_t next_rest_ = 0;
};

}  // namespace godwit
