// godwit inspect --activations: what goes into linear layers, and what smoothing makes of it.
#pragma once

#include <optional>
#include <string>

#include "cli/options/command_line.h"
#include "cli/options/model_options.h"
#include "cli/options/smoothing_options.h"

namespace godwit::cli {

struct ActivationsOptions {
  std::optional<std::string> layers;  // a decoder layer's number, or a name with *
  SmoothingOptions smoothing;
  CalibrationInput calibration{.pieces = {.samples = 64}};  // enough to look at
};

void AddActivationsFlags(CommandLine& line, ActivationsOptions& options);

// Refuses what is meant for --activations without it.
void CheckActivations(const ActivationsOptions& options);

// Reads the text with the model, as far as the layers asked for, and prints what it saw.
void InspectActivations(const ModelOptions& model, const ActivationsOptions& options, bool json);

}  // namespace godwit::cli
