#include "eval/log_probability.h"

#include <algorithm>
#include <cmath>

namespace godwit::eval {

namespace {

// softmax(logits)[i] = exp(logits[i] - top) / sum.
struct Softmax {
  explicit Softmax(std::span<const float> logits)
      : top(*std::max_element(logits.begin(), logits.end())) {
    for (const float logit : logits) sum += std::exp(logit - top);
    log_sum = std::log(sum);
  }

  double LogOf(float logit) const { return logit - top - log_sum; }

  double top;
  double sum = 0;
  double log_sum;
};

}  // namespace

double LogProbability(std::span<const float> logits, int32_t token) {
  return Softmax(logits).LogOf(logits[token]);
}

int32_t MostProbable(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double KlDivergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  const Softmax p(p_logits), q(q_logits);
  double sum = 0;
  for (size_t i = 0; i < p_logits.size(); ++i) {
    const double log_p = p.LogOf(p_logits[i]);
    const double share = std::exp(log_p);
    // 0 log 0 = 0, whatever q's logarithm is.
    if (share != 0) sum += share * (log_p - q.LogOf(q_logits[i]));
  }
  return sum;
}

}  // namespace godwit::eval
