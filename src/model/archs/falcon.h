// Falcon (model_type "falcon"), and the names of its first checkpoints: "RefinedWebModel" (7B, RW)
// and "RefinedWeb" (40B).
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeFalcon(const HfConfig& config);
DecoderSpec DescribeRefinedWebModel(const HfConfig& config);
DecoderSpec DescribeRefinedWeb(const HfConfig& config);

}  // namespace godwit
