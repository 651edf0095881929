// A short probe of what steps cost, for an engine that has measured none near those in question.
#pragma once

#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/stopwatch.h"
#include "engine/text_plan.h"
#include "model/language_model.h"
#include "ops/exec.h"

namespace godwit {

// The depth of the probe for a prompt of so many tokens: half of it, as far as limits and free
// memory go.
int64_t ProbeDepth(const TextPlan& plan, int64_t prompt_tokens, int64_t chunk_tokens);

// Runs a part of a probe while no other step runs, and returns when it has ended. Other requests'
// steps may come between two parts.
using RunPart = FunctionRef<void(FunctionRef<void(const Exec& exec)> part)>;

// Reads a few chunks of the prompt's tokens and continues them by a few. It does so at a text's
// beginning, and behind `depth` tokens whose keys are drawn, not computed. Each step is a part, and
// is recorded. A chunk has at most `chunk_tokens`, and so few that it takes about two seconds. Ends
// early without memory.
void ProbeCosts(const LanguageModel& model, const TextPlan& plan, std::span<const int32_t> prompt,
                int64_t chunk_tokens, int64_t depth, NowMs now_ms, RunPart run_part,
                FunctionRef<void(const StepWork& work, double ms)> record);

// Takes a few tokens whose keys are drawn from one text into another (ReuseTokens), and records the
// time. Ends early without memory.
void ProbeReuse(const TextPlan& plan, NowMs now_ms, RunPart run_part,
                FunctionRef<void(int64_t tokens, double ms)> record);

}  // namespace godwit
