// What guesses would have come to for a text that is there already: as if a model had chosen its
// tokens, in steps of given times.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/draft_source.h"
#include "generate/step_costs.h"

namespace godwit {

struct Replay {
  int64_t tokens = 0;
  int64_t steps = 0;
  int64_t guesses = 0;
  double ms = 0;
  double plain_ms = 0;  // one token after the other
};

// The tokens from `from` >= 1 on; those before it are the prompt. costs: of one row and of the most
// that a step may have. The sources learn from no logits.
Replay ReplayDrafts(std::span<const int32_t> text, int64_t from, const StepCosts& costs,
                    std::vector<std::unique_ptr<DraftSource>> sources);

}  // namespace godwit
