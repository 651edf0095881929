// Mixtral 8x7B, 8x22B (model_type "mixtral").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeMixtral(const HfConfig& config);

}  // namespace godwit
