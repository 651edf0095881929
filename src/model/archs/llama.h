// Llama 1, 2, 3, 3.1, 3.2 (model_type "llama").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeLlama(const HfConfig& config);

}  // namespace godwit
