// The frame of both programs around their verbs. Errors meet the user of the command line here
// alone.
#pragma once

#include <string_view>

#include "base/function_ref.h"

namespace godwit::cli {

// Returns the result of `run`. If it throws, prints a message on standard error and returns the
// exit code.
int ReportErrors(FunctionRef<int()> run);

// To be called before a verb: handles signals, and lets only the first of several ranks speak.
void TakeSignalsAndRanks();

// Throws Error(kUnsupported) if several ranks were started and the verb makes no use of them.
void RefuseUselessRanks(std::string_view verb);

}  // namespace godwit::cli
