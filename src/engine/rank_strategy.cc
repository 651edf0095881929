#include "engine/rank_strategy.h"

#include "engine/shared_tokens.h"

namespace godwit {

Proposal RankStrategy::Propose(const Sequence& sequence, int64_t max_tokens) {
  tokens_.clear();
  if (leader_->MaxRows() == 1 || sequence.pending() > 1) {
    return leader_->Propose(sequence, max_tokens);
  }
  if (ranks_->rank() == 0) {
    const Proposal proposal = leader_->Propose(sequence, max_tokens);
    TokensOfRankZero(*ranks_, proposal.segment.parents);
    if (!proposal.segment.parents.empty()) TokensOfRankZero(*ranks_, proposal.segment.tokens);
    return proposal;
  }
  parents_ = TokensOfRankZero(*ranks_, {});
  if (parents_.empty()) return {.segment = NextSegment(sequence, 1), .logit_rows = 1};
  tokens_ = TokensOfRankZero(*ranks_, {});
  return {.segment = {.tokens = tokens_,
                      .text = sequence.cache.get(),
                      .phase = Phase::kDecode,
                      .parents = parents_},
          .logit_rows = std::ssize(tokens_)};
}

std::span<const int32_t> RankStrategy::Accept(Sequence& sequence, const Outcome& outcome) {
  if (outcome.logits.rows == 0) return {};
  if (ranks_->rank() == 0) {
    std::span<const int32_t> chosen;
    try {
      chosen = leader_->Accept(sequence, outcome);
    } catch (...) {  // the text ends, and the other ranks go on
      TokensOfRankZero(*ranks_, {});
      throw;
    }
    TokensOfRankZero(*ranks_, chosen);
    return chosen;
  }
  const auto chosen = TokensOfRankZero(*ranks_, {});
  Follow(sequence, outcome, chosen);
  sequence.tokens.insert(sequence.tokens.end(), chosen.begin(), chosen.end());
  return std::span<const int32_t>(sequence.tokens).last(chosen.size());
}

void RankStrategy::Follow(Sequence& sequence, const Outcome& outcome,
                          std::span<const int32_t> chosen) {
  int32_t row = 0;
  for (const int32_t token : chosen) {
    if (outcome.on_choice != nullptr) (*outcome.on_choice)(outcome.logits.RowSpan(row));
    for (int32_t next = row + 1; next < std::ssize(tokens_); ++next) {
      const auto at = static_cast<size_t>(next);
      if (parents_[at] != row || tokens_[at] != token) continue;
      row = next;
      break;
    }
  }
  if (!tokens_.empty()) sequence.cache->Accept(row);
}

}  // namespace godwit
