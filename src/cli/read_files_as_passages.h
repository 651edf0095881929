// The files of a prompt as passages: run --passages and plan --passages.
#pragma once

#include "chat/answers.h"
#include "chat/passages.h"
#include "cli/run_options.h"
#include "console/options/text_input.h"
#include "godwit/engine.h"

namespace godwit::cli {

// Makes the prompt of the files and the question, and returns its parts. Throws Error(kInput)
// without files or a question, and as chat::CutAtPassages does.
chat::PassagePrompt CutFilesAsPassages(const Engine& engine, const RunOptions& options,
                                       const console::GivenTexts& texts, const Session& session,
                                       chat::Prompt& prompt);

// Does the same, reads the files, shows the progress, and makes a prompt that goes on from them.
// Says on standard error that the answer is not exactly the model's own. Ctrl-C cancels. Also
// throws as Session::ReadPassages does.
void ReadFilesAsPassages(const Engine& engine, const RunOptions& options,
                         const console::GivenTexts& texts, Session& session, chat::Prompt& prompt);

}  // namespace godwit::cli
