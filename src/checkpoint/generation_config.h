// generation_config.json: how the makers of a model sample from it.
#pragma once

#include <filesystem>

#include "godwit/sampler_options.h"

namespace godwit {

// Reads do_sample (false: a temperature of 0), temperature, top_k, top_p, min_p, eta_cutoff and
// repetition_penalty, which is of the whole text. Nothing if `folder` has no such file. Values that
// make no sense are told in SamplerDefaults::problems. Throws Error(kFormat) for a file that is no
// JSON object.
SamplerDefaults ReadGenerationConfig(const std::filesystem::path& folder);

}  // namespace godwit
