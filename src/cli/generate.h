// Generation at a terminal, with progress, quiet input and Ctrl-C.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "chat/answers.h"
#include "godwit/engine.h"

namespace godwit::cli {

// Generates, and shows the progress of the prompt until it is read. Typed text waits unseen for the
// next reader of the terminal. Ctrl-C cancels; `presses_to_exit` presses end the program.
GenerateResult GenerateAtTerminal(Session& session, std::span<const int32_t> prompt,
                                  GenerateOptions options, int presses_to_exit);

// Session::ReadPassages with the same progress and Ctrl-C.
PassagesRead ReadPassagesAtTerminal(Session& session, std::span<const int32_t> head,
                                    std::span<const std::vector<int32_t>> passages,
                                    int64_t read_anew, int presses_to_exit);

// GenerateAtTerminal for several answers to one prompt: chat::GenerateAnswers.
std::vector<GenerateResult> GenerateAnswersAtTerminal(
    const Engine& engine, std::span<const int32_t> prompt, const GenerateOptions& options,
    const SessionOptions& session, int count, int presses_to_exit,
    const std::function<void(int answer, const Event& event)>& on_event,
    const chat::BegunAnswers& begun = {});

}  // namespace godwit::cli
