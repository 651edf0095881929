#include "sampling/top_p.h"

#include <algorithm>

namespace godwit {

void KeepTopP(Candidates& candidates, float top_p) {
  if (top_p >= 1) return;
  // All tokens below (1 - p) / n together hold less than 1 - p, so the nucleus is complete before
  // the first of them. Without top-k this leaves a few thousand of 150,000 tokens to sort. The
  // half keeps rounding out of the argument.
  const double hopeless = 0.5 * (1.0 - top_p) / static_cast<double>(candidates.size());
  std::erase_if(candidates, [=](const Candidate& c) { return c.probability < hopeless; });
  if (!std::is_sorted(candidates.begin(), candidates.end(), Likelier)) {
    std::sort(candidates.begin(), candidates.end(), Likelier);
  }
  double mass = 0;
  size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || mass < top_p)) {
    mass += candidates[kept++].probability;
  }
  candidates.resize(kept);
  Normalize(candidates);
}

}  // namespace godwit
