// godwit inspect --activations: what goes into linear layers, and what smoothing makes of it.
#pragma once

#include "cli/options/inspect_options.h"

namespace godwit::cli {

// Reads the text with the model, as far as the layers asked for, and prints what it saw.
void InspectActivations(InspectOptions options);

}  // namespace godwit::cli
