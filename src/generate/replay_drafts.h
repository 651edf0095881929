// What guesses would have come to for a text that is there already: as if a model had chosen its
// tokens, in steps of given times.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "generate/draft_tree.h"
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

struct ReplayTimes {
  StepCosts step;         // of one row and of the most that a step may have
  double heads_ms = 0;    // that trained heads take in a step
  double partial_ms = 0;  // and a row of the model that sees a part of its cache
};

// The tokens from `from` >= 1 on; those before it are the prompt. The sources learn from no states
// and no logits.
Replay ReplayDrafts(std::span<const int32_t> text, int64_t from, const StepCosts& costs,
                    std::vector<std::unique_ptr<DraftSource>> sources, DraftShape shape = {});

// The same with the model at hand: it takes every step, and its choice is the text's token, so that
// sources rest and learn as where it writes. `partial` guesses what is likeliest, as the draws with
// which the text was chosen are not in it. prompt: read by ReadPrompt, and the text's first tokens,
// fewer than all; a fork of it goes on. Throws what the model throws.
Replay ReplayDrafts(std::span<const int32_t> text, const TextCache& prompt,
                    const ReplayTimes& times, std::vector<std::unique_ptr<DraftSource>> sources,
                    DraftShape shape, const LanguageModel& model, const Exec& exec);

// All but the last of these tokens, with which the first step of a replay begins.
void ReadPrompt(std::span<const int32_t> tokens, const LanguageModel& model, const Exec& exec,
                TextCache& cache);

// The clock of this thread's replay, for its sources.
double ReplayedMs();

}  // namespace godwit
