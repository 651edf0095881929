#include "generate/speculative.h"

#include <algorithm>
#include <numeric>

namespace godwit {
namespace {

// The most steps with draft tokens in a row. Savings are measured against plain steps, which get
// slower as the text grows.
constexpr int64_t kMaxDraftedSteps = 128;

}  // namespace

Speculative::Speculative(std::vector<std::unique_ptr<DraftSource>> sources, NowMs now_ms,
                         DraftShape shape)
    : tree_(std::move(sources), std::move(shape)),
      now_ms_(now_ms),
      accepted_(tree_.sources().size()) {
  for (const auto& source : tree_.sources()) {
    stats_.accepted.push_back({source.drafts->name(), 0});
  }
}

template <typename Ask>
void Speculative::AskAll(const Ask& ask) {
  for (auto& source : tree_.sources()) {
    if (source.worth.rests()) continue;
    const double since = now_ms_() - source.drafts->once_ms();
    ask(*source.drafts);
    if (continues_) source.worth.Spend(now_ms_() - source.drafts->once_ms() - since);
  }
}

Proposal Speculative::Propose(const Sequence& sequence, int64_t max_tokens) {
  const int64_t length = sequence.cache->length();
  continues_ = sequence.pending() == 1;
  AskAll([&](DraftSource& drafts) {
    drafts.Follow(std::span(sequence.tokens)
                      .first(std::min(std::ssize(sequence.tokens), length + max_tokens)));
  });
  const int64_t awake = std::ranges::count_if(
      tree_.sources(), [](const auto& source) { return !source.worth.rests(); });
  grown_ = continues_ && awake > 0 && !PlainStepIsDue();
  if (!grown_) {
    const Segment segment = NextSegment(sequence, max_tokens);
    own_rows_ = std::ssize(segment.tokens);
    return {.segment = segment, .logit_rows = own_rows_ == sequence.pending()};
  }
  const int64_t room =
      std::min(sequence.cache->limit_tokens() - length, sequence.cache->MaxNextTokens());
  const double since = now_ms_();
  tree_.Grow(sequence.tokens, costs_,
             {.rows = max_tokens, .depth = room - 1, .other_rows = other_rows_});
  const double each = (now_ms_() - since) / static_cast<double>(awake);
  for (auto& source : tree_.sources()) {
    if (!source.worth.rests()) source.worth.Spend(each);
  }
  own_rows_ = std::ssize(tree_.tokens());
  if (own_rows_ == 1) return {.segment = NextSegment(sequence, 1), .logit_rows = 1};
  return {.segment = {.tokens = tree_.tokens(),
                      .text = sequence.cache.get(),
                      .phase = Phase::kDecode,
                      .parents = tree_.parents()},
          .logit_rows = own_rows_};
}

std::span<const int32_t> Speculative::Accept(Sequence& sequence, const Outcome& outcome) {
  if (outcome.logits.rows == 0) return {};
  // The first steps of a process are slow, so the time of a prompt says nothing about as many draft
  // tokens.
  if (continues_) costs_.Record(outcome.step_rows, outcome.step_ms);
  other_rows_ = outcome.step_rows - own_rows_;
  if (grown_) {
    AskAll([&](DraftSource& drafts) {
      for (int64_t row = 0; row < own_rows_; ++row) {
        drafts.Learn(tree_.tokens()[row], outcome.logits.RowSpan(row));
      }
    });
  }
  int64_t row = 0, tokens = 0;
  const auto keep_path = [&] {
    if (grown_ && own_rows_ > 1) sequence.cache->Accept(row);
  };
  try {
    tokens = Walk(sequence, outcome, row);
  } catch (...) {
    keep_path();
    throw;
  }
  keep_path();
  if (continues_) {
    CountWorth(outcome);
    CountDraftedSteps();
  }
  if (!PlainStepIsDue()) {
    AskAll([&](DraftSource& drafts) { drafts.ContinueFrom(sequence, outcome, row); });
  }
  return std::span<const int32_t>(sequence.tokens).last(tokens);
}

void Speculative::EndStep(const LanguageModel& model, const Exec& exec) {
  for (auto& source : tree_.sources()) {
    if (source.worth.rests()) continue;
    const double ms = source.drafts->EndStep(model, exec);
    if (continues_) source.worth.Spend(ms);
  }
}

bool Speculative::ReleaseMemory() {
  bool any = false;
  for (const auto& source : tree_.sources()) any |= source.drafts->ReleaseMemory();
  return any;
}

// Follows the tree to `row`, as far as the model chooses the draft tokens. Returns the number of
// tokens that the model chose.
int64_t Speculative::Walk(Sequence& sequence, const Outcome& outcome, int64_t& row) {
  int64_t tokens = 1;
  int32_t token = Choose(sequence, outcome, row);
  stats_.steps += continues_ ? 1 : 0;
  std::ranges::fill(accepted_, 0);
  if (!grown_) return tokens;
  stats_.draft_tokens += own_rows_ - 1;
  while (const auto next = tree_.Step(row, token)) {
    row = *next;
    ++accepted_[tree_.CheapestSourceOf(row)];
    ++stats_.accepted[tree_.SourceOf(row)].draft_tokens;
    token = Choose(sequence, outcome, row);
    ++tokens;
  }
  return tokens;
}

void Speculative::CountDraftedSteps() {
  if (own_rows_ > 1) {
    ++drafted_steps_;
    return;
  }
  if (PlainStepIsDue()) plain_after_ = std::min(2 * plain_after_, kMaxDraftedSteps);
  drafted_steps_ = 0;
}

// Adds the saved time: every accepted draft token saves a step of one row, less the time of the
// drafted rows.
void Speculative::CountWorth(const Outcome& outcome) {
  const double plain_ms = costs_.Ms(other_rows_ + 1), known_ms = costs_.Ms(outcome.step_rows);
  const double step_ms = known_ms > 0 ? known_ms : outcome.step_ms;
  const auto draft_tokens = static_cast<double>(std::reduce(accepted_.begin(), accepted_.end()));
  const double saved = plain_ms > 0 ? std::max(0.0, (draft_tokens + 1) * plain_ms - step_ms) : 0;
  for (size_t i = 0; i < accepted_.size(); ++i) {
    if (tree_.sources()[i].worth.rests()) ++stats_.accepted[i].skipped_steps;
    if (!tree_.shape().fixed.empty()) continue;  // they are read whether they pay or not
    const double share = draft_tokens > 0 ? static_cast<double>(accepted_[i]) / draft_tokens : 0;
    tree_.sources()[i].worth.EndStep(step_ms, share * saved);
  }
}

}  // namespace godwit
