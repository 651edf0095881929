#include "generate/autoregressive.h"

namespace godwit {

Proposal Autoregressive::Propose(const Sequence& sequence, int64_t max_tokens) {
  const Segment segment = NextSegment(sequence, max_tokens);
  return {.segment = segment, .logit_rows = std::ssize(segment.tokens) == sequence.pending()};
}

std::span<const int32_t> Autoregressive::Accept(Sequence& sequence,
                                                MatrixView<const float> /*hidden*/,
                                                MatrixView<float> logits) {
  if (logits.rows == 0) return {};
  const int32_t token = sequence.sampler.Sample(logits.RowSpan(0), sequence.tokens, sequence.id,
                                                static_cast<int64_t>(sequence.tokens.size()));
  sequence.tokens.push_back(token);
  return std::span<const int32_t>(sequence.tokens).last(1);
}

}  // namespace godwit
