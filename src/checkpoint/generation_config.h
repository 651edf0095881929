// generation_config.json: how the makers of a model sample from it.
#pragma once

#include <filesystem>

#include "godwit/sampler_options.h"

namespace godwit {

// What the file in `folder` says of do_sample (false: a temperature of 0), temperature, top_k,
// top_p, min_p, eta_cutoff and repetition_penalty, which is of the whole text. Nothing where there
// is no file. Values that make no sense are told in SamplerDefaults::problems. Throws
// Error(kFormat) for a file that is no JSON object.
SamplerDefaults ReadGenerationConfig(const std::filesystem::path& folder);

}  // namespace godwit
