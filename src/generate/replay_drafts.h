// What guesses would have come to for a text that is there already: as if a model had chosen its
// tokens, in steps of given times.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/draft_source.h"
#include "generate/speculative.h"
#include "generate/step_costs.h"

namespace godwit {

struct Replay {
  std::vector<DraftStats::Accepted> accepted;  // of every source
  int64_t tokens = 0;
  int64_t steps = 0;
  int64_t guesses = 0;
  double ms = 0;
  double plain_ms = 0;  // one token after the other
};

// What the model says behind each of the tokens of such a text, asked in their order.
class ReadAlong {
 public:
  // The text outlives it.
  ReadAlong(const LanguageModel& model, const Exec& exec, std::unique_ptr<TextCache> cache,
            std::span<const int32_t> text);
  // Of one row, until the next call.
  Outcome After(int64_t position);

 private:
  const LanguageModel& model_;
  const Exec& exec_;
  std::unique_ptr<TextCache> cache_;
  std::span<const int32_t> text_;
  int64_t first_ = 0;                   // position of the states that are there
  std::vector<float> states_, logits_;  // [rows, hidden], [vocab]
};

// The tokens from `from` >= 1 on; those before it are the prompt. costs: of one row and of the most
// that a step may have. model: what the sources learn from; null: from no states and no logits. Of
// guesses that came to nothing they learn nothing.
Replay ReplayDrafts(std::span<const int32_t> text, int64_t from, const StepCosts& costs,
                    std::vector<std::unique_ptr<DraftSource>> sources, ReadAlong* model = nullptr);

}  // namespace godwit
