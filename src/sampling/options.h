// The check that every SamplerOptions goes through before it is used, and the names of its steps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "godwit/sampler_options.h"

namespace godwit {

// "top_k"
std::string_view Name(SamplerStep step);

// Steps by their names, as "penalties;top_k;temperature"; llama.cpp's other spellings, "top-k" and
// "temp", too. Throws Error(kInput) for a name that is none, naming the nearest, and
// Error(kUnsupported) for those of llama.cpp that are not built.
std::vector<SamplerStep> ParseSteps(std::string_view names);

// Throws Error(kInput) that names the first field that makes no sense for a vocabulary of `vocab`.
void Validate(const SamplerOptions& options, int32_t vocab);

}  // namespace godwit
