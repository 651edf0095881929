// Ranks that continue one text: what one of them chooses, all take.
#pragma once

#include <memory>
#include <utility>

#include "dist/communicator.h"
#include "generate/strategy.h"

namespace godwit {

// Around the strategy of rank 0. The others know its tokens alone, so neither their instruction
// sets nor their samplers show.
class LedStrategy : public Strategy {
 public:
  LedStrategy(std::shared_ptr<Communicator> ranks, std::unique_ptr<Strategy> leader)
      : ranks_(std::move(ranks)), leader_(std::move(leader)) {}

  Proposal Propose(const Sequence& sequence, int64_t max_tokens) override {
    return leader_->Propose(sequence, max_tokens);
  }
  std::span<const int32_t> Accept(Sequence& sequence, const Outcome& outcome) override;

 private:
  std::shared_ptr<Communicator> ranks_;
  std::unique_ptr<Strategy> leader_;
};

}  // namespace godwit
