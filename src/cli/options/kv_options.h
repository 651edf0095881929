// The flags that decide what is kept of a text, and how.
#pragma once

#include "cli/options/command_line.h"
#include "godwit/engine.h"
#include "model/spec.h"

namespace godwit::cli {

void AddKvFlags(CommandLine& line, SessionOptions& options);
// Of those, the ones that do not depend on the length of a text: --kv, --kv-type, --ubatch-size.
void AddKvCacheFlags(CommandLine& line, SessionOptions& options);

// How many tokens are kept at most. Throws what Engine::NewSession would throw, but before the
// weights are loaded.
int64_t CheckKvOptions(const DecoderSpec& spec, const SessionOptions& options);

}  // namespace godwit::cli
