// GLM-4 9B in the format of transformers (model_type "glm"), and the GLM-4-0414 models ("glm4").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeGlm(const HfConfig& config);
DecoderSpec DescribeGlm4(const HfConfig& config);

}  // namespace godwit
