#include "sampling/eta.h"

#include <algorithm>
#include <cmath>

namespace godwit {

void KeepEta(Candidates& candidates, float epsilon) {
  if (epsilon <= 0) return;
  double entropy = 0;  // in nats
  double max = 0;
  for (const Candidate& candidate : candidates) {
    const double p = candidate.probability;
    if (p > 0) entropy -= p * std::log(p);
    max = std::max(max, p);
  }
  const double eta =
      std::min(static_cast<double>(epsilon), std::sqrt(epsilon) * std::exp(-entropy));
  const double cutoff = std::min(eta, max);
  std::erase_if(candidates, [=](const Candidate& c) { return c.probability < cutoff; });
  Normalize(candidates);
}

}  // namespace godwit
