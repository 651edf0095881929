// The files of a prompt as passages: run --passages.
#pragma once

#include "chat/answers.h"
#include "cli/run_options.h"
#include "console/options/text_input.h"
#include "godwit/engine.h"

namespace godwit::cli {

// Reads the files, shows the progress, and makes a prompt that goes on from them. Says on standard
// error that the answer is not exactly the model's own. Ctrl-C cancels. Throws Error(kInput)
// without files or a question, and as Session::ReadPassages does.
void ReadFilesAsPassages(const Engine& engine, const RunOptions& options,
                         const console::GivenTexts& texts, Session& session, chat::Prompt& prompt);

}  // namespace godwit::cli
