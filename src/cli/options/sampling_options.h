// The flags that decide how the output is chosen and where it ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "godwit/engine.h"

namespace godwit::cli {

struct SamplingFlags {
  int64_t max_tokens = -1;
  int64_t seed = -1;  // -1: random
  SamplerOptions sampler;
  std::vector<std::string> stop;
  bool ignore_eos = false;
};

void AddSamplingFlags(CommandLine& line, SamplingFlags& flags);

// Throws Error(kInput) for values that make no sense, whatever the model. A random seed is drawn
// here: it stands in the result, so that the run can be repeated.
GenerateOptions MakeGenerateOptions(const SamplingFlags& flags);

}  // namespace godwit::cli
