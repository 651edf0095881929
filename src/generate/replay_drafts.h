// Replay: the result that speculation would have had for an existing text, as if a model had chosen
// its tokens, in steps of given times.
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
  int64_t draft_tokens = 0;
  double ms = 0;
  double plain_ms = 0;  // one token after the other
};

struct ReplayTimes {
  StepCosts step;         // for one row and for the most that a step may have
  double heads_ms = 0;    // of trained heads in a step
  double partial_ms = 0;  // of a row of the model that sees a part of its cache
};

// Replays the tokens from `from` >= 1 on; those before it are the prompt. The sources learn from no
// states and no logits.
Replay ReplayDrafts(std::span<const int32_t> text, int64_t from, const StepCosts& costs,
                    std::vector<std::unique_ptr<DraftSource>> sources, DraftShape shape = {});

// Replays with the model: it takes every step, and its choice is the text's token, so that sources
// rest and learn as in generation. `partial` offers the likeliest token, since it does not know the
// draws by which the text was chosen. prompt: the text's first tokens, fewer than all, read by
// ReadPrompt; a fork of it goes on. Throws what the model throws.
Replay ReplayDrafts(std::span<const int32_t> text, const TextCache& prompt,
                    const ReplayTimes& times, std::vector<std::unique_ptr<DraftSource>> sources,
                    DraftShape shape, const LanguageModel& model, const Exec& exec);

// Reads all but the last of these tokens, with which the first step of a replay begins.
void ReadPrompt(std::span<const int32_t> tokens, const LanguageModel& model, const Exec& exec,
                TextCache& cache);

// The clock of this thread's replay, for its sources.
double ReplayedMs();

}  // namespace godwit
