#include "generate/head_drafts.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace godwit {
namespace {

// Of a head's tokens the likeliest few are offered, by the power of two of their probability.
constexpr size_t kOffered = 8;
constexpr int32_t kClasses = 7;

int32_t ClassOf(double probability) {
  return std::clamp(static_cast<int32_t>(-std::log2(std::max(probability, 1e-9))), 0, kClasses - 1);
}

void OfferLikeliest(std::span<const float> logits, int32_t head, std::vector<DraftOffer>& offers) {
  std::array<int32_t, kOffered> best{};
  size_t count = 0;
  const auto logit = [&](int32_t t) { return logits[static_cast<size_t>(t)]; };
  float least = -INFINITY;
  for (int32_t t = 0; t < std::ssize(logits); ++t) {
    if (!(logit(t) > least)) continue;
    if (count < kOffered) ++count;
    size_t at = count - 1;
    for (; at > 0 && logit(best[at - 1]) < logit(t); --at) best[at] = best[at - 1];
    best[at] = t;
    if (count == kOffered) least = logit(best[kOffered - 1]);
  }
  if (count == 0) return;
  const float largest = logit(best[0]);
  constexpr float kNothing = 14;  // less than a millionth of the largest
  double sum = 0;
  for (const float value : logits) {
    if (value > largest - kNothing) sum += std::exp(value - largest);
  }
  for (size_t i = 0; i < count; ++i) {
    const double probability = std::exp(logit(best[i]) - largest) / sum;
    offers.push_back({best[i], head * kClasses + ClassOf(probability)});
  }
}

}  // namespace

HeadDrafts::HeadDrafts(std::shared_ptr<const DraftHeads> heads)
    : heads_(std::move(heads)), offers_(static_cast<size_t>(heads_->count())) {
  for (int64_t head = 0; head < heads_->count(); ++head) {
    for (int32_t i = 0; i < kClasses; ++i) priors_.push_back(0.7 * std::exp2(-i));
  }
}

void HeadDrafts::Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
                       std::vector<DraftOffer>& offers) {
  const auto head = static_cast<size_t>(tree[static_cast<size_t>(node)].depth);
  if (text.size() != length_ || head >= offers_.size()) return;
  offers.insert(offers.end(), offers_[head].begin(), offers_[head].end());
}

void HeadDrafts::GoOnFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) {
  Workspace::Scope scope(outcome.exec->workspace);
  const auto logits = outcome.exec->workspace.Matrix<float>(heads_->count(), heads_->vocab());
  heads_->Guess(*outcome.exec, *outcome.model, outcome.hidden.Rows(row, row + 1), logits);
  for (size_t head = 0; head < offers_.size(); ++head) {
    offers_[head].clear();
    OfferLikeliest(logits.RowSpan(static_cast<int64_t>(head)), static_cast<int32_t>(head),
                   offers_[head]);
  }
  length_ = sequence.tokens.size();
}

}  // namespace godwit
