#include "engine/led_strategy.h"

#include "engine/shared_tokens.h"

namespace godwit {

std::span<const int32_t> LedStrategy::Accept(Sequence& sequence, MatrixView<const float> hidden,
                                             MatrixView<float> logits) {
  if (logits.rows == 0) return {};
  std::vector<int32_t> tokens;
  if (ranks_->rank() == 0) {
    const auto accepted = leader_->Accept(sequence, hidden, logits);
    tokens.assign(accepted.begin(), accepted.end());
  }
  tokens = TokensOfRankZero(*ranks_, tokens);
  if (ranks_->rank() != 0) {
    sequence.tokens.insert(sequence.tokens.end(), tokens.begin(), tokens.end());
  }
  return std::span<const int32_t>(sequence.tokens).last(tokens.size());
}

}  // namespace godwit
