// InternLM2 and InternLM2.5 (model_type "internlm2").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeInternLm2(const HfConfig& config);

}  // namespace godwit
