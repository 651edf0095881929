#include "engine/led_strategy.h"

#include "engine/shared_tokens.h"

namespace godwit {

std::span<const int32_t> LedStrategy::Accept(Sequence& sequence, const Outcome& outcome) {
  if (outcome.logits.rows == 0) return {};
  std::vector<int32_t> tokens;
  if (ranks_->rank() == 0) {
    const auto accepted = leader_->Accept(sequence, outcome);
    tokens.assign(accepted.begin(), accepted.end());
  } else if (outcome.on_choice != nullptr) {
    (*outcome.on_choice)(outcome.logits.RowSpan(0));
  }
  tokens = TokensOfRankZero(*ranks_, tokens);
  if (ranks_->rank() != 0) {
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  }
  return std::span<const int32_t>(sequence.tokens).last(tokens.size());
}

}  // namespace godwit
