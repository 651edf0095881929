#include "generate/head_drafts.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/copy_rows.h"

namespace godwit {
namespace {

// A head offers its likeliest few tokens, by the power of two of their probability.
constexpr size_t kOffered = 8;
constexpr int32_t kClasses = 7;

int32_t ClassOf(double probability) {
  return std::clamp(static_cast<int32_t>(-std::log2(std::max(probability, 1e-9))), 0, kClasses - 1);
}

void OfferLikeliest(std::span<const float> logits, int32_t head, std::vector<DraftOffer>& offers) {
  std::array<int32_t, kOffered> best{};
  size_t count = 0;
  const auto logit = [&](int32_t t) { return logits[t]; };
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

HeadBatch::HeadBatch(std::shared_ptr<const DraftHeads> heads, NowMs now_ms)
    : heads_(std::move(heads)), now_ms_(now_ms) {}

void HeadBatch::Add(std::shared_ptr<TextOffers> draft_tokens, std::span<const float> state) {
  waiting_.push_back(std::move(draft_tokens));
  states_.insert(states_.end(), state.begin(), state.end());
}

double HeadBatch::Compute(const LanguageModel& model, const Exec& exec) {
  if (waiting_.empty()) return share_ms_;
  const double since = now_ms_();
  const int64_t n = std::ssize(waiting_), hidden = std::ssize(states_) / n;
  // Requests are taken out first, so that none waits after an exception.
  computed_.clear();
  std::swap(waiting_, computed_);
  Workspace::Scope scope(exec.workspace);
  const auto states = exec.workspace.Matrix<float>(n, hidden);
  ops::CopyRows(exec, {states_.data(), n, hidden, hidden}, states);
  states_.clear();
  const auto logits = exec.workspace.Matrix<float>(heads() * n, heads_->vocab());
  heads_->ComputeLogits(exec, model, states, logits);
  for (int64_t row = 0; row < logits.rows; ++row) {
    const auto head = static_cast<size_t>(row / n);
    auto& offers = computed_[row % n]->offers[head];
    offers.clear();
    OfferLikeliest(logits.RowSpan(row), static_cast<int32_t>(head), offers);
  }
  return share_ms_ = (now_ms_() - since) / static_cast<double>(n);
}

HeadDrafts::HeadDrafts(std::shared_ptr<HeadBatch> batch)
    : batch_(std::move(batch)), draft_tokens_(std::make_shared<HeadBatch::TextOffers>()) {
  draft_tokens_->offers.resize(batch_->heads());
  for (int64_t head = 0; head < batch_->heads(); ++head) {
    for (int32_t i = 0; i < kClasses; ++i) priors_.push_back(0.7 * std::exp2(-i));
  }
}

void HeadDrafts::Offer(std::span<const int32_t> text, std::span<const DraftNode> tree, int32_t node,
                       std::vector<DraftOffer>& offers) {
  const auto head = static_cast<size_t>(tree[node].depth);
  if (text.size() != draft_tokens_->length || head >= draft_tokens_->offers.size()) return;
  offers.insert(offers.end(), draft_tokens_->offers[head].begin(),
                draft_tokens_->offers[head].end());
}

void HeadDrafts::ContinueFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) {
  batch_->Add(draft_tokens_, outcome.hidden.RowSpan(row));
  draft_tokens_->length = sequence.tokens.size();
}

double HeadDrafts::EndStep(const LanguageModel& model, const Exec& exec) {
  return batch_->Compute(model, exec);
}

}  // namespace godwit
