// The flags that decide how the output is chosen and where it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "console/options/command_line.h"
#include "godwit/engine.h"

namespace godwit::cli {

struct SamplingFlags {
  int64_t output_tokens = -1;  // the most there may be; -1: no limit
  int64_t seed = -1;           // -1: random
  SamplerOptions sampler;      // but for what has a place in `given`
  SamplerChoices given;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::string json_schema;  // GenerateOptions has these, too
  std::string draft;
};

void AddSamplingFlags(console::CommandLine& line, SamplingFlags& flags);

// Throws Error(kInput) for values that make no sense, whatever the model. A random seed is drawn
// here: it stands in the result, so that the run can be repeated.
GenerateOptions MakeGenerateOptions(const SamplingFlags& flags);

struct EffectiveSampler {
  SamplerOptions options;
  std::set<std::string, std::less<>> from_model;  // fields of SamplerChoices
};

// `sampler`, as the flags made it, with what the model recommends where no flag says otherwise.
// Throws Error(kFormat) for a recommended value that makes no sense, and warns of it on standard
// error if a flag overrides it, as of recommendations that are not built.
EffectiveSampler TakeModelDefaults(const SamplingFlags& flags, const SamplerOptions& sampler,
                                   const SamplerDefaults& model);

}  // namespace godwit::cli
