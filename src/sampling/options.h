// The check that every SamplerOptions goes through before it is used.
#pragma once

#include "godwit/sampler_options.h"

namespace godwit {

// Throws Error(kInput) that names the first field that makes no sense for a vocabulary of `vocab`.
void Validate(const SamplerOptions& options, int32_t vocab);

}  // namespace godwit
