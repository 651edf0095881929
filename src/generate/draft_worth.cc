#include "generate/draft_worth.h"

#include <algorithm>

namespace godwit {
namespace {

constexpr int64_t kTrialSteps = 48, kShortestRest = 64, kLongestRest = 1024;
// The share of the time that a source may always take, because it may later save more.
constexpr double kFree = 0.01;
// The steps after whose loss a trial ends early, because short texts pay for it, too.
constexpr double kMaxLost = 2;

}  // namespace

void DraftWorth::EndStep(double step_ms, double saved_ms) {
  if (rests()) {
    --rest_;
    return;
  }
  step_ms_ += step_ms;
  saved_ms_ += saved_ms;
  ++steps_;
  if (steps_ < kTrialSteps && spent_ms_ - saved_ms_ < kMaxLost * step_ms) return;
  of_last_trial_ms_ = spent_ms_ / static_cast<double>(steps_);
  const bool loses = spent_ms_ > saved_ms_ + kFree * step_ms_;
  rest_ = loses ? std::max(next_rest_, kShortestRest) : 0;
  next_rest_ = std::min(4 * rest_, kLongestRest);
  steps_ = 0;
  spent_ms_ = saved_ms_ = step_ms_ = 0;
}

}  // namespace godwit
