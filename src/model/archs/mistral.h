// Mistral 7B and its descendants (model_type "mistral").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeMistral(const HfConfig& config);

}  // namespace godwit
