#include "generate/partial_text.h"

#include <utility>

namespace godwit {

PartialText::PartialText(std::unique_ptr<AttentionPolicy> policy, int64_t min_tokens)
    : policy_(std::move(policy)), min_tokens_(min_tokens) {}

Sequence& PartialText::ContinueAs(const Sequence& sequence) {
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
  return *draft_;
}

bool PartialText::Release() {
  released_ = true;
  const bool any = draft_.has_value();
  draft_.reset();
  return any;
}

}  // namespace godwit
