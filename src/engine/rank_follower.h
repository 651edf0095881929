// RankFollower: a rank that does as rank 0 tells it (rank_command.h). It has no requests, only
// texts: rank 0 decides all, chooses the tokens and talks to users.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>

#include "dist/communicator.h"
#include "engine/rank_command.h"
#include "engine/saved_texts.h"
#include "engine/served_model.h"
#include "engine/text_plan.h"
#include "generate/sequence.h"
#include "generate/strategy.h"
#include "model/language_model.h"
#include "ops/exec.h"

namespace godwit {

class RankFollower {
 public:
  // Makes the strategy that a text would have on one rank. Other ranks choose nothing by it, but
  // its draft tokens are as many at most.
  using NewStrategy = std::function<std::unique_ptr<Strategy>(const BegunText&)>;

  // Borrows all arguments but the last. saved: null if texts are not saved.
  RankFollower(const ServedModel& served, const LanguageModel& model, SavedTexts* saved,
               NewStrategy new_strategy);

  // Follows until rank 0 ends. on_forgotten: called with the tokens of a text that goes. Throws
  // what a step throws, or the communicator.
  void Follow(const Exec& exec,
              const std::function<void(std::span<const int32_t>)>& on_forgotten = {});

 private:
  struct Text {
    BegunText begun;  // without its tokens
    std::shared_ptr<const TextPlan> plan;
    Sequence sequence;
    std::unique_ptr<Strategy> strategy;
  };

  void Begin(BegunText begun);
  // The cache of a text that begins. Null: this rank has less on its disk than rank 0.
  std::unique_ptr<TextCache> CacheOf(const TextPlan& plan, const BegunText& begun,
                                     std::span<const int32_t> tokens) const;
  void Save(const TextToSave& saved) const;
  // Computes this rank's part of the logits that rank 0 wants.
  void ComputeLogits(const Exec& exec, int64_t rows);
  void Step(const Exec& exec, std::span<const TextRows> parts);

  const ServedModel& served_;
  const LanguageModel& model_;
  SavedTexts* saved_;
  NewStrategy new_strategy_;
  Communicator& ranks_;
  std::map<int64_t, Text> texts_;  // by ticket
};

}  // namespace godwit
