#include "sampling/min_p.h"

#include <algorithm>

namespace godwit {

void KeepMinP(Candidates& candidates, float min_p) {
  if (min_p <= 0) return;
  double max = 0;
  for (const Candidate& candidate : candidates) max = std::max(max, candidate.probability);
  const double cutoff = min_p * max;
  std::erase_if(candidates, [=](const Candidate& c) { return c.probability < cutoff; });
  Normalize(candidates);
}

}  // namespace godwit
