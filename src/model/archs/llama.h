// Llama 1, 2, 3, 3.1, 3.2 (model_type "llama").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeLlama(const HfConfig& config);

// For families that are its variations: with another rope_theta than 10000 unless told.
DecoderSpec DescribeLlamaLike(const HfConfig& config, double default_theta);

}  // namespace godwit
