#include "generate/chain_drafts.h"

#include <algorithm>
#include <cmath>

namespace godwit {
namespace {

constexpr double kAssumed = 0.8;
// Steps after which one draft token is made although none pays, since that may change.
constexpr int64_t kTryAgain = 64;

}  // namespace

void ChainDrafts::Offer(std::span<const int32_t> text, std::span<const DraftNode> tree,
                        int32_t node, std::vector<DraftOffer>& offers) {
  const auto [token, parent, depth, reach] = tree[node];
  const auto at = static_cast<size_t>(depth);
  if (std::ssize(text) != text_tokens_ || at > draft_tokens_.size()) return;
  if (depth == 0) chain_.clear();
  if (chain_.size() != at) return;
  if (depth > 0 && (chain_.back() != parent || draft_tokens_[at - 1].token != token)) return;
  chain_.push_back(node);
  if (at == draft_tokens_.size()) return;
  const DraftToken& draft = draft_tokens_[at];
  offers.push_back({draft.token, draft.kind});
  if (draft.other >= 0) offers.push_back({draft.other, draft.other_kind});
}

void ChainDrafts::ContinueFrom(const Sequence& sequence, const Outcome& outcome, int64_t row) {
  CountHits(sequence.tokens);
  draft_tokens_.clear();
  costs_.Record(outcome.step_rows, outcome.step_ms);
  if (!CanDraft(sequence)) return;
  const ChainForecast forecast = Predict(sequence, outcome);
  if (forecast.most < 1 || (!forecast.pays && ++idle_steps_ % kTryAgain != 0)) return;
  text_tokens_ = std::ssize(sequence.tokens);
  since_ms_ = now_ms_();
  together_ = 0;
  double reach = 1;
  const auto add = [&](int32_t token, std::span<const float> logits) {
    const auto kind = static_cast<size_t>(Keep(token, logits).kind);
    const double now = now_ms_(), ms = together_ > 0 ? together_ms_ : now - since_ms_;
    since_ms_ = now;
    together_ = std::max<int64_t>(together_ - 1, 0);
    if (first_apart_ && !once_ms_) {
      once_ms_ = ms;
    } else {
      draft_costs_[draft_tokens_.size() == 1 ? 0 : 1].Record(1, ms);
    }
    reach *= rates_[kind].Chance(kPriors[kind]);
    return forecast.pays && std::ssize(draft_tokens_) < forecast.most && GoesOn(forecast, reach);
  };
  try {
    Draft(sequence, outcome, row, forecast.most, add);
  } catch (const Error& error) {
    // A cancelled text ends by itself.
    if (error.kind() != ErrorKind::kCancelled) OnError(error);
  }
}

void ChainDrafts::SpreadTime(int64_t tokens) {
  const double now = now_ms_(), ms = now - since_ms_;
  since_ms_ = now;
  together_ = tokens;
  together_ms_ = ms / static_cast<double>(tokens);
  if (!first_apart_ || once_ms_) return;
  once_ms_ = ms;
  together_ms_ = 0;  // counts as nothing
}

void ChainDrafts::CountHits(std::span<const int32_t> text) {
  auto at = static_cast<size_t>(text_tokens_);
  for (const DraftToken& draft : draft_tokens_) {
    if (at >= text.size()) break;
    const bool hit = text[at++] == draft.token;
    all_.Count(hit);
    rates_[draft.kind].Count(hit);
    if (!hit) break;
  }
}

ChainDrafts::ChainForecast ChainDrafts::Predict(const Sequence& sequence,
                                                const Outcome& outcome) const {
  ChainForecast forecast{.others = outcome.step_rows - outcome.logits.rows,
                         .most = 0,
                         .chance = all_.Chance(kAssumed),
                         .tokens_per_ms = 0,
                         .pays = false};
  const double plain_ms = StepMs(forecast, 0);
  if (plain_ms == 0) return forecast;
  const int64_t room = sequence.cache->limit_tokens() - sequence.cache->length();
  // The limit is twice the largest measured number of rows; more would be a blind guess.
  const int64_t rows = std::min(StepCosts::kMaxRows, 2 * costs_.Largest()) - forecast.others;
  forecast.most = std::min({kMaxDraftTokens, room - 1, rows - 1});
  double tokens = static_cast<double>(forecast.others + 1), reach = 1;
  forecast.tokens_per_ms = tokens / plain_ms;
  for (int64_t draft_tokens = 1; draft_tokens <= forecast.most; ++draft_tokens) {
    tokens += reach *= forecast.chance;
    const double rate = tokens / StepMs(forecast, draft_tokens);
    if (rate <= forecast.tokens_per_ms) continue;
    forecast.tokens_per_ms = rate;
    forecast.pays = true;
  }
  return forecast;
}

double ChainDrafts::StepMs(const ChainForecast& forecast, int64_t draft_tokens) const {
  const double step_ms = costs_.Ms(forecast.others + 1 + draft_tokens);
  if (draft_tokens == 0) return step_ms;
  const auto& [first, other] = draft_costs_;
  return step_ms + first.Ms(1) + static_cast<double>(draft_tokens - 1) * other.Ms(1);
}

// Whether more draft tokens, behind those accepted with probability `reach`, make more tokens than
// their time is worth.
bool ChainDrafts::GoesOn(const ChainForecast& forecast, double reach) const {
  const int64_t made = std::ssize(draft_tokens_);
  double tokens = 0;
  for (int64_t draft_tokens = made + 1; draft_tokens <= forecast.most; ++draft_tokens) {
    tokens += reach *= forecast.chance;
    const double ms = StepMs(forecast, draft_tokens) - StepMs(forecast, made);
    if (tokens > forecast.tokens_per_ms * ms) return true;
  }
  return false;
}

const ChainDrafts::DraftToken& ChainDrafts::Keep(int32_t token, std::span<const float> logits) {
  int32_t other = -1;
  float best = -INFINITY;
  for (int32_t t = 0; t < std::ssize(logits); ++t) {
    if (!(logits[t] > best) || t == token) continue;
    best = logits[t];
    other = t;
  }
  const float lead = logits[token] - best;
  const auto kind = static_cast<int32_t>(std::ranges::upper_bound(kLeads, lead) - kLeads.begin());
  return draft_tokens_.emplace_back(
      DraftToken{.token = token,
                 .kind = kind,
                 .other = other,
                 .other_kind = kind + static_cast<int32_t>(kLeads.size()) + 1});
}

}  // namespace godwit
