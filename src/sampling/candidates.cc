#include "sampling/candidates.h"

#include <algorithm>
#include <cmath>

namespace godwit {

void Softmax(Candidates& candidates, float temperature) {
  float max = -INFINITY;
  for (const Candidate& candidate : candidates) max = std::max(max, candidate.logit);
  for (Candidate& candidate : candidates) {
    // The difference comes before the division, in double: at a temperature of 1e-30 logit /
    // temperature would overflow.
    const double below_max = static_cast<double>(candidate.logit) - max;
    candidate.probability = std::exp(below_max / temperature);
  }
  Normalize(candidates);
}

void Normalize(Candidates& candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.probability;
  for (Candidate& candidate : candidates) candidate.probability /= sum;
}

}  // namespace godwit
