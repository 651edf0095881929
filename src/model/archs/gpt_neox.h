// GPT-NeoX and Pythia (model_type "gpt_neox").
#pragma once

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

DecoderSpec DescribeGptNeox(const HfConfig& config);

}  // namespace godwit
