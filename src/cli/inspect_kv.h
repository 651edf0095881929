// godwit inspect --kv: what cache policies do, in words, and what they cost in bytes.
#pragma once

#include "cli/options/inspect_options.h"

namespace godwit::cli {

// Of the model, or of options.shape; reads no weights.
void ExplainKv(InspectOptions options);

}  // namespace godwit::cli
