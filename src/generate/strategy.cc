#include "generate/strategy.h"

#include <algorithm>
#include <cassert>

namespace godwit {

Segment NextSegment(const Sequence& sequence, int64_t max_tokens) {
  const int64_t pending = sequence.pending();
  assert(pending > 0 && max_tokens > 0);
  return {.tokens = std::span<const int32_t>(sequence.tokens)
                        .subspan(sequence.cache->length(), std::min(max_tokens, sequence.next())),
          .text = sequence.cache.get(),
          .phase = pending == 1 ? Phase::kDecode : Phase::kPrompt};
}

int32_t Choose(Sequence& sequence, const Outcome& outcome, int64_t row) {
  const auto logits = outcome.logits.RowSpan(row);
  if (outcome.on_choice != nullptr) (*outcome.on_choice)(logits);
  if (sequence.restrict_to) sequence.restrict_to(sequence.tokens, logits);
  const int32_t token =
      sequence.sampler.Sample(logits, sequence.tokens, sequence.id, std::ssize(sequence.tokens));
  sequence.tokens.push_back(token);
  return token;
}

}  // namespace godwit
