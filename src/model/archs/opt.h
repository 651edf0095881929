// OPT and Galactica (model_type "opt").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeOpt(const HfConfig& config);

}  // namespace godwit
