// How the tokens of a finished run were chosen: for people, and as numbers.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/options/sampling_options.h"

namespace godwit::cli {

// "top-k 40, top-p 0.9 (the model's), temperature 0.7": the steps that change something, in order.
std::string DescribeSampler(const EffectiveSampler& sampler);

// Every option, the names of the steps in order as "samplers", and as "from_model" what the model's
// generation_config.json said.
nlohmann::ordered_json SamplerJson(const EffectiveSampler& sampler);

}  // namespace godwit::cli
