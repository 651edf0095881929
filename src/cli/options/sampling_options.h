// Flags for the choice of the output's tokens, and for its end.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "cli/options/model_options.h"
#include "console/options/command_line.h"
#include "godwit/engine.h"

namespace godwit::cli {

struct SamplingFlags {
  int64_t output_tokens = -1;  // the most; -1: no limit
  int64_t seed = -1;           // -1: random
  SamplerOptions sampler;      // without the options in `given`
  SamplerChoices given;
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::string json_schema;  // these two as in GenerateOptions
  std::string draft;
  std::string draft_tree;   // GenerateOptions::draft_tree
  std::string draft_model;  // LoadOptions::draft_model, by any name that -m takes
};

inline constexpr const char* kDraftTreeHelp =
    "limit trees of draft tokens by rows=N,depth=N,children=N, each optional, or fix them, such as "
    "1,3,3,3 or 3x3x3: three tokens, three after each of these, and so on; for comparison";

void AddSamplingFlags(console::CommandLine& line, SamplingFlags& flags);

// The options of the flags. Throws Error(kInput) for values that make no sense for any model. A
// random seed is drawn here and stands in the result, so that the run can be repeated.
GenerateOptions MakeGenerateOptions(const SamplingFlags& flags);

// Makes the model's options load all that the draft sources of the flags need. Throws as FindModel
// does.
void TakeDraftFlags(const SamplingFlags& flags, ModelOptions& model);

struct EffectiveSampler {
  SamplerOptions options;
  std::set<std::string, std::less<>> from_model;  // fields of SamplerChoices
};

// `sampler`, as the flags made it, with the model's recommendations where no flag says otherwise.
// Throws Error(kFormat) for a recommended value that makes no sense. If a flag overrides such a
// value, it only warns on standard error. It also warns of recommendations that are not supported.
EffectiveSampler TakeModelDefaults(const SamplingFlags& flags, const SamplerOptions& sampler,
                                   const SamplerDefaults& model);

}  // namespace godwit::cli
