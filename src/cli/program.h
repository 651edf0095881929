// What both programs do around their verbs. Here alone errors meet the user of the command line.
#pragma once

#include <string_view>

#include "base/function_ref.h"

namespace godwit::cli {

// What `run` returns; of what it throws, after a message on standard error, the exit code.
int ReportErrors(FunctionRef<int()> run);

// Before a verb: signals are handled, and of several ranks the first one speaks.
void TakeSignalsAndRanks();

// Throws Error(kUnsupported) where several ranks were started and the verb makes no use of them.
void RefuseUselessRanks(std::string_view verb);

}  // namespace godwit::cli
