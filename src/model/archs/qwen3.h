// Qwen3, dense (model_type "qwen3").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeQwen3(const HfConfig& config);

}  // namespace godwit
