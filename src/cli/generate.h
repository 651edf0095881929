// Generating, with what belongs to it at a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "godwit/engine.h"

namespace godwit::cli {

// Shows how far the prompt is read, until all of it is. What is typed meanwhile waits, unseen, for
// whoever reads it next. Ctrl-C cancels; pressed `presses_to_exit` times, it leaves the program.
GenerateResult GenerateAtTerminal(Session& session, std::span<const int32_t> prompt,
                                  GenerateOptions options, int presses_to_exit);

// Likewise, of several answers to one prompt: chat::GenerateAnswers.
std::vector<GenerateResult> GenerateAnswersAtTerminal(
    const Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options,
    const SessionOptions& session, int count, int presses_to_exit,
    const std::function<void(int answer, const Event& event)>& on_event);

}  // namespace godwit::cli
