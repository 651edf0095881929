#include "generate/recycled_drafts.h"

#include <algorithm>
#include <cmath>

namespace godwit {
namespace {

constexpr int32_t kGaps = 4;

uint8_t GapClass(float gap) { return gap < 0.5f ? 0 : gap < 1.5f ? 1 : gap < 3 ? 2 : 3; }

}  // namespace

RecycledDrafts::RecycledDrafts(int64_t vocab) : successors_(vocab) {
  // Priors: the first token's by its lead, the others' by their distance from the first.
  constexpr double kFirst[kGaps] = {0.25, 0.35, 0.5, 0.7}, kOther[kGaps] = {0.2, 0.1, 0.04, 0.01};
  priors_.assign(std::begin(kFirst), std::end(kFirst));
  for (size_t rank = 1; rank < kKept; ++rank) {
    for (const double prior : kOther) priors_.push_back(prior / static_cast<double>(rank));
  }
}

void RecycledDrafts::Offer(std::span<const int32_t> /*text*/, std::span<const DraftNode> tree,
                           int32_t node, std::vector<DraftOffer>& offers) {
  const Successors& known = successors_[tree[node].token];
  for (size_t rank = 0; rank < known.count; ++rank) {
    offers.push_back({known.tokens[rank], static_cast<int32_t>(rank) * kGaps + known.gaps[rank]});
  }
}

void RecycledDrafts::Learn(int32_t token, std::span<const float> logits) {
  std::array<int32_t, kKept> best{};
  size_t count = 0;
  const auto logit = [&](int32_t t) { return logits[t]; };
  float least = -INFINITY;  // smallest kept logit; NaN never exceeds it
  for (int32_t t = 0; t < std::ssize(logits); ++t) {
    if (!(logit(t) > least)) continue;
    if (count < kKept) ++count;
    size_t at = count - 1;
    for (; at > 0 && logit(best[at - 1]) < logit(t); --at) best[at] = best[at - 1];
    best[at] = t;
    if (count == kKept) least = logit(best[kKept - 1]);
  }
  Successors& known = successors_[token];
  known.tokens = best;
  known.count = static_cast<uint8_t>(count);
  for (size_t rank = 0; rank < count; ++rank) {
    const size_t other = rank == 0 ? std::min<size_t>(1, count - 1) : 0;
    known.gaps[rank] = GapClass(std::abs(logit(best[rank]) - logit(best[other])));
  }
}

}  // namespace godwit
