// godwit inspect --kv: the effect of cache policies in words, and their cost in bytes.
#pragma once

#include "cli/options/inspect_options.h"

namespace godwit::cli {

// Explains policies for the model, or for options.shape. Reads no weights.
void ExplainKv(InspectOptions options);

}  // namespace godwit::cli
