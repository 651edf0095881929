// MPT (model_type "mpt").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeMpt(const HfConfig& config);

}  // namespace godwit
