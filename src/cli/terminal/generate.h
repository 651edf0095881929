// Session::Generate with what belongs to it at a terminal.
#pragma once

#include <cstdint>
#include <span>

#include "godwit/engine.h"

namespace godwit::cli {

// Shows how far the prompt is read, until all of it is. What is typed meanwhile waits, unseen, for
// whoever reads it next. Ctrl-C cancels; pressed `presses_to_exit`
// times, it leaves the program.
GenerateResult GenerateAtTerminal(Session& session, std::span<const int32_t> prompt,
                                  GenerateOptions options, int presses_to_exit);

}  // namespace godwit::cli
