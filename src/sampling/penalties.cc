#include "sampling/penalties.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace godwit {
namespace {

// Refuses infinite or NaN logits, which break the softmax. Only options of astronomic size cause
// them.
void CheckBelowInfinity(std::span<const float> logits, int32_t token) {
  const float logit = logits[token];
  if (!(logit < INFINITY)) {
    Throw(ErrorKind::kInput, "logit_bias and penalties turn the logit of token {} into {}", token,
          logit);
  }
}

}  // namespace

Penalties::Penalties(const SamplerOptions& options, int32_t vocab)
    : bias_(options.logit_bias.begin(), options.logit_bias.end()),
      repeat_last_n_(options.repeat_last_n),
      repeat_penalty_(options.repeat_penalty),
      presence_penalty_(options.presence_penalty),
      frequency_penalty_(options.frequency_penalty) {
  const bool off =
      std::ranges::find(options.steps, SamplerStep::kPenalties) == options.steps.end() ||
      (repeat_penalty_ == 1 && presence_penalty_ == 0 && frequency_penalty_ == 0);
  if (off) repeat_last_n_ = 0;
  if (repeat_last_n_ != 0) counts_.resize(vocab, 0);
}

void Penalties::Apply(std::span<float> logits, std::span<const int32_t> history) {
  std::span<const int32_t> window = history;
  if (repeat_last_n_ >= 0 && history.size() > static_cast<size_t>(repeat_last_n_)) {
    window = history.last(repeat_last_n_);
  }
  for (const int32_t token : window) {
    if (token < 0 || static_cast<size_t>(token) >= logits.size()) {
      Throw(ErrorKind::kInput, "token {} of the text is outside the vocabulary of {}", token,
            logits.size());
    }
  }

  for (const auto& [token, bias] : bias_) logits[token] += bias;

  for (const int32_t token : window) ++counts_[token];
  for (const int32_t token : window) {
    int32_t& count = counts_[token];
    if (count == 0) continue;  // an earlier occurrence has settled it
    float& logit = logits[token];
    logit = logit > 0 ? logit / repeat_penalty_ : logit * repeat_penalty_;
    logit -= presence_penalty_ + frequency_penalty_ * static_cast<float>(count);
    count = 0;
  }

  for (const auto& [token, bias] : bias_) CheckBelowInfinity(logits, token);
  for (const int32_t token : window) CheckBelowInfinity(logits, token);
}

}  // namespace godwit
