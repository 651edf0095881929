#include "generate/autoregressive.h"

namespace godwit {

Proposal Autoregressive::Propose(const Sequence& sequence, int64_t max_tokens) {
  const Segment segment = NextSegment(sequence, max_tokens);
  return {.segment = segment, .logit_rows = std::ssize(segment.tokens) == sequence.pending()};
}

std::span<const int32_t> Autoregressive::Accept(Sequence& sequence, const Outcome& outcome) {
  if (outcome.logits.rows == 0) return {};
  Choose(sequence, outcome, 0);
  return std::span<const int32_t>(sequence.tokens).last(1);
}

}  // namespace godwit
