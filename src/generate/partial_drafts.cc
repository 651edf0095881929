#include "generate/partial_drafts.h"

#include <utility>

namespace godwit {

PartialDrafts::PartialDrafts(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens,
                             NowMs now_ms)
    // The first draft token of all makes the policy's index.
    : ChainDrafts(now_ms, /*first_apart=*/true),
      policy_(std::move(policy)),
      min_tokens_(min_tokens) {}

bool PartialDrafts::CanDraft(const Sequence& sequence) const {
  return !released_ && sequence.cache->length() >= min_tokens_;
}

bool PartialDrafts::ReleaseMemory() {
  released_ = true;
  const bool any = draft_.has_value();
  draft_.reset();
  return any;
}

void PartialDrafts::ContinueAs(const Sequence& sequence) {
  if (!draft_) {
    draft_.emplace(Sequence{.tokens = sequence.tokens,
                            .cache = sequence.cache->Fork(policy_->Fork()),
                            .sampler = sequence.sampler,
                            .id = sequence.id});
  } else {
    draft_->cache->ContinueAs(*sequence.cache);
    draft_->tokens.resize(text_tokens_);
    draft_->tokens.insert(draft_->tokens.end(), sequence.tokens.begin() + text_tokens_,
                          sequence.tokens.end());
  }
  text_tokens_ = std::ssize(sequence.tokens);
}

void PartialDrafts::Draft(const Sequence& sequence, const Outcome& outcome, int64_t /*row*/,
                          int64_t /*most*/, Add add) {
  ContinueAs(sequence);
  const LanguageModel& model = *outcome.model;
  Exec exec = *outcome.exec;
  exec.cancel = outcome.cancel;
  Workspace::Scope scope(exec.workspace);
  const auto hidden = exec.workspace.Matrix<float>(1, model.hidden_size());
  const auto logits = exec.workspace.Matrix<float>(1, model.vocab_size());
  bool goes_on = true;
  while (goes_on) {
    const Segment segment = NextSegment(*draft_, 1);
    model.Forward(exec, {&segment, 1}, hidden);
    model.Logits(exec, hidden, logits);
    goes_on = add(Choose(*draft_, {.hidden = hidden, .logits = logits}, 0), logits.RowSpan(0));
  }
}

}  // namespace godwit
