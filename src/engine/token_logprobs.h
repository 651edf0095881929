// Log-probabilities of output tokens.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "godwit/engine.h"

namespace godwit {

// The log-probabilities of one row of logits, taken before a sampler changes it.
class LogprobRow {
 public:
  // logits [vocab]; top: how many of the likeliest are listed.
  LogprobRow(std::span<const float> logits, int top);

  TokenLogprobs Of(int32_t token) const;

 private:
  std::vector<float> logits_;
  double log_sum_;  // of exp(logits)
  std::vector<TokenLogprob> top_;
};

}  // namespace godwit
