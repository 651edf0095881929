#include "generate/speculative.h"

#include <algorithm>

namespace godwit {
namespace {

// After so many steps without a guess that pays, one is looked for in every eighth step only: in a
// small model to look for it is work, too.
constexpr int64_t kIdleSteps = 64, kIdleStride = 8;

}  // namespace

Speculative::Speculative(std::vector<std::unique_ptr<DraftSource>> sources)
    : tree_(std::move(sources)) {
  for (const auto& source : tree_.sources()) stats_.accepted.push_back({source->name(), 0});
}

Proposal Speculative::Propose(const Sequence& sequence, int64_t max_tokens) {
  const int64_t length = sequence.cache->length();
  for (const auto& source : tree_.sources()) {
    source->Follow(std::span(sequence.tokens)
                       .first(static_cast<size_t>(
                           std::min(std::ssize(sequence.tokens), length + max_tokens))));
  }
  continues_ = sequence.pending() == 1;
  grown_ = continues_ && (idle_steps_ < kIdleSteps || idle_steps_ % kIdleStride == 0);
  if (!grown_) {
    idle_steps_ += continues_ ? 1 : 0;
    const Segment segment = NextSegment(sequence, max_tokens);
    own_rows_ = std::ssize(segment.tokens);
    return {.segment = segment, .logit_rows = own_rows_ == sequence.pending()};
  }
  const int64_t room =
      std::min(sequence.cache->limit_tokens() - length, sequence.cache->MostNext());
  tree_.Grow(sequence.tokens, costs_,
             {.rows = std::min(max_tokens, kMostRows),
              .depth = std::min(room - 1, kMostDepth),
              .other_rows = other_rows_});
  own_rows_ = std::ssize(tree_.tokens());
  idle_steps_ = own_rows_ > 1 ? 0 : idle_steps_ + 1;
  if (own_rows_ == 1) return {.segment = NextSegment(sequence, 1), .logit_rows = 1};
  return {.segment = {.tokens = tree_.tokens(),
                      .text = sequence.cache.get(),
                      .phase = Phase::kDecode,
                      .parents = tree_.parents()},
          .logit_rows = own_rows_};
}

std::span<const int32_t> Speculative::Accept(Sequence& sequence, const Outcome& outcome) {
  if (outcome.logits.rows == 0) return {};
  costs_.Record(outcome.step_rows, outcome.step_ms);
  other_rows_ = outcome.step_rows - own_rows_;
  if (grown_) {
    for (const auto& source : tree_.sources()) {
      for (int64_t row = 0; row < own_rows_; ++row) {
        source->Learn(tree_.tokens()[static_cast<size_t>(row)], outcome.logits.RowSpan(row));
      }
    }
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
  for (const auto& source : tree_.sources()) source->GoOnFrom(outcome, row);
  return std::span<const int32_t>(sequence.tokens).last(static_cast<size_t>(tokens));
}

// Down the tree as far as the guesses are what the model chooses: to `row`. Returns how many tokens
// it chose.
int64_t Speculative::Walk(Sequence& sequence, const Outcome& outcome, int64_t& row) {
  int64_t tokens = 1;
  int32_t token = Choose(sequence, outcome, row);
  stats_.steps += continues_ ? 1 : 0;
  if (!grown_) return tokens;
  stats_.guesses += own_rows_ - 1;
  while (const auto next = tree_.Step(row, token)) {
    row = *next;
    const auto source =
        std::ranges::find(stats_.accepted, tree_.SourceOf(row), &DraftStats::Accepted::source);
    ++source->guesses;
    token = Choose(sequence, outcome, row);
    ++tokens;
  }
  return tokens;
}

}  // namespace godwit
