// The sampler settings that a model's makers recommend.
#pragma once

#include <string>
#include <vector>

#include "godwit/sampler_options.h"

namespace godwit::capi {

// Writes the recommendations over `sampler`. Returns a sentence for each one that cannot be
// followed, or makes no sense.
std::vector<std::string> Recommend(const SamplerDefaults& model, SamplerOptions& sampler);

}  // namespace godwit::capi
