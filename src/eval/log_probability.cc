#include "eval/log_probability.h"

#include <algorithm>
#include <cmath>

namespace godwit::eval {

double LogProbability(std::span<const float> logits, int32_t token) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - top);
  return logits[static_cast<size_t>(token)] - top - std::log(sum);
}

}  // namespace godwit::eval
