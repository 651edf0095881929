#include "generate/autoregressive.h"

#include <algorithm>
#include <cassert>

namespace godwit {

Proposal Autoregressive::Propose(const Sequence& sequence, int64_t max_tokens) {
  const int64_t pending = sequence.pending();
  assert(pending > 0 && max_tokens > 0);
  const int64_t n = std::min(pending, max_tokens);
  const auto tokens =
      std::span<const int32_t>(sequence.tokens)
          .subspan(static_cast<size_t>(sequence.cache->length()), static_cast<size_t>(n));
  return {.segment = {.tokens = tokens,
                      .text = sequence.cache.get(),
                      .phase = pending == 1 ? Phase::kDecode : Phase::kPrompt},
          .logit_rows = n == pending ? 1 : 0};
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
