// Qwen1.5, Qwen2 and Qwen2.5 (model_type "qwen2").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeQwen2(const HfConfig& config);

}  // namespace godwit
