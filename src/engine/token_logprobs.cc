#include "engine/token_logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace godwit {

LogprobRow::LogprobRow(std::span<const float> logits, int top)
    : logits_(logits.begin(), logits.end()) {
  const float largest = *std::ranges::max_element(logits_);
  double sum = 0;
  for (const float x : logits_) sum += std::exp(double{x} - largest);
  log_sum_ = largest + std::log(sum);
  if (!std::isfinite(log_sum_)) return;  // the sampler refuses such logits, and NaN has no order

  std::vector<int32_t> tokens(logits_.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto count = std::min<std::ptrdiff_t>(top, std::ssize(tokens));
  // The smaller id comes first among equals, so that the list is unique.
  std::partial_sort(tokens.begin(), tokens.begin() + count, tokens.end(),
                    [&](int32_t a, int32_t b) {
                      const float x = logits_[a];
                      const float y = logits_[b];
                      return x > y || (x == y && a < b);
                    });
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const int32_t token = tokens[i];
    top_.push_back({.token = token, .logprob = Of(token).logprob});
  }
}

TokenLogprobs LogprobRow::Of(int32_t token) const {
  return {.logprob = static_cast<float>(logits_[token] - log_sum_), .top = top_};
}

}  // namespace godwit
