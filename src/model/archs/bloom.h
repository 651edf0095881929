// BLOOM and BLOOMZ (model_type "bloom").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeBloom(const HfConfig& config);

}  // namespace godwit
