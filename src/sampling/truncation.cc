#include "sampling/truncation.h"

#include <algorithm>
#include <cmath>

namespace godwit {
namespace {

constexpr size_t kBlock = 64;

// Has no branches, so that it is vectorised: nearly all blocks of a vocabulary fail this test.
bool AnyAbove(std::span<const float> logits, float bar) {
  int32_t any = 0;
  for (const float logit : logits) any |= logit > bar;
  return any != 0;
}

}  // namespace

size_t TopKCapacity(int top_k, size_t vocab) {
  return top_k == 0 ? vocab : std::min(2 * static_cast<size_t>(top_k), vocab);
}

void TopK(std::span<const float> logits, int top_k, Candidates& candidates) {
  const size_t limit = top_k == 0 ? logits.size() : static_cast<size_t>(top_k);
  // One pass with a buffer of 2k. When it is full, its better half stays, and the worst of that
  // half becomes the bar for later tokens. The time is O(vocab) for any k, and few tokens of a real
  // vocabulary pass the bar. (A heap is as fast for k = 40 but O(vocab log k) for large k.)
  const size_t capacity = TopKCapacity(top_k, logits.size());
  float bar = -INFINITY;
  candidates.clear();
  for (size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, logits.size());
    if (!AnyAbove(logits.subspan(begin, end - begin), bar)) continue;
    for (size_t i = begin; i < end; ++i) {
      // The test is not >=: a token that equals the bar has a higher id than the k tokens found.
      if (!(logits[i] > bar)) continue;
      candidates.push_back({static_cast<int32_t>(i), logits[i], 0.0});
      if (candidates.size() < capacity || capacity <= limit) continue;
      const auto worst = candidates.begin() + static_cast<std::ptrdiff_t>(limit - 1);
      std::nth_element(candidates.begin(), worst, candidates.end(), Likelier);
      bar = worst->logit;
      candidates.resize(limit);
    }
  }
  if (limit >= logits.size()) return;
  std::sort(candidates.begin(), candidates.end(), Likelier);
  if (candidates.size() > limit) candidates.resize(limit);
}

void KeepTopK(Candidates& candidates, int top_k) {
  const auto limit = static_cast<size_t>(top_k);
  if (limit == 0 || limit >= candidates.size()) return;
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(limit);
  std::partial_sort(candidates.begin(), end, candidates.end(), Likelier);
  candidates.resize(limit);
}

void KeepTopP(Candidates& candidates, float top_p) {
  if (top_p >= 1) return;
  // All tokens below (1 - p) / n together hold less than 1 - p, so the nucleus is complete before
  // the first of them. Without top-k this leaves a few thousand of 150,000 tokens to sort. The half
  // keeps rounding out of the argument.
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

void KeepMinP(Candidates& candidates, float min_p) {
  if (min_p <= 0) return;
  double max = 0;
  for (const Candidate& candidate : candidates) max = std::max(max, candidate.probability);
  const double cutoff = min_p * max;
  std::erase_if(candidates, [=](const Candidate& c) { return c.probability < cutoff; });
  Normalize(candidates);
}

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
