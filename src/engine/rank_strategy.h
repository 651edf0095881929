// RankStrategy: ranks continue one text with the tokens that rank 0 chooses.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "dist/communicator.h"
#include "generate/strategy.h"

namespace godwit {

// Encloses the strategy of rank 0. The other ranks know its tokens and its draft tokens alone, so
// neither their instruction sets nor their samplers nor their clocks change the result.
class RankStrategy : public Strategy {
 public:
  RankStrategy(std::shared_ptr<Communicator> ranks, std::unique_ptr<Strategy> leader)
      : ranks_(std::move(ranks)), leader_(std::move(leader)) {}

  Proposal Propose(const Sequence& sequence, int64_t max_tokens) override;
  std::span<const int32_t> Accept(Sequence& sequence, const Outcome& outcome) override;
  void EndStep(const LanguageModel& model, const Exec& exec) override {
    leader_->EndStep(model, exec);
  }
  int64_t MaxRows() const override { return leader_->MaxRows(); }

 private:
  // Makes another rank go down the tree that it reads for rank 0.
  void Follow(Sequence& sequence, const Outcome& outcome, std::span<const int32_t> chosen);

  std::shared_ptr<Communicator> ranks_;
  std::unique_ptr<Strategy> leader_;
  std::vector<int32_t> tokens_, parents_;  // on other ranks: the rows of the step, if it is a tree
};

}  // namespace godwit
