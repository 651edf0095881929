// Llama 1, 2, 3, 3.1, 3.2 (model_type "llama").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeLlama(const HfConfig& config);

// For families that are its variations: without its choice of biases. default_theta: rope_theta
// unless told.
DecoderSpec DescribeLlamaLike(const HfConfig& config, double default_theta = 10000);

}  // namespace godwit
