// godwit quantize --to gguf: a GGUF file, which needs no text.
#pragma once

#include <string>

#include "cli/options/model_options.h"
#include "quant/write_gguf.h"

namespace godwit::lab {

struct GgufOutput {
  std::string file;  // -o
  const quant::GgufScheme* scheme = nullptr;
  bool dry_run = false;
  bool json = false;
};

// Runs as a verb, and chooses the model. Returns the exit code.
int QuantizeToGguf(cli::ModelOptions& options, const GgufOutput& output);

}  // namespace godwit::lab
