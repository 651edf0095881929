#include "generate/autoregressive.h"

#include <algorithm>
#include <cassert>

namespace godwit {

Autoregressive::Autoregressive(const LanguageModel& model, int64_t chunk_tokens)
    : model_(model), chunk_tokens_(chunk_tokens) {}

std::span<const int32_t> Autoregressive::Step(Sequence& sequence, const Exec& exec) {
  assert(sequence.pending() > 0);
  const int64_t pending = sequence.pending();
  const int64_t n = std::min({pending, chunk_tokens_, sequence.policy->max_step_tokens()});
  const auto chunk =
      std::span<const int32_t>(sequence.tokens)
          .subspan(static_cast<size_t>(sequence.policy->length()), static_cast<size_t>(n));

  Workspace::Scope scope(exec.workspace);
  const auto hidden = exec.workspace.Matrix<float>(n, model_.hidden_size());
  const auto logits = exec.workspace.Matrix<float>(1, model_.vocab_size());
  const Segment segment{.tokens = chunk, .policy = sequence.policy.get()};
  model_.Forward(exec, {&segment, 1}, hidden);
  if (n < pending) return {};

  // From here on the policy has advanced and may be unable to go back. A wish to stop waits for the
  // next step; these logits of one row are quick.
  Exec to_the_end = exec;
  to_the_end.cancel = nullptr;
  model_.Logits(to_the_end, hidden.Rows(n - 1, n), logits);
  const int32_t token = sequence.sampler.Sample(logits.RowSpan(0), sequence.tokens, sequence.id,
                                                static_cast<int64_t>(sequence.tokens.size()));
  sequence.tokens.push_back(token);
  return std::span<const int32_t>(sequence.tokens).last(1);
}

}  // namespace godwit
