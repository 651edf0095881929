// The `quantization_config` of layers that are packed in groups (weights/packed_format.h).
#pragma once

#include "weights/hf_config.h"
#include "weights/packed_format.h"

namespace godwit {

// Each throws Error(kUnsupported) that names the key for bits, groups and variants that are not
// supported, and Error(kFormat) for what is no such configuration.

// The `weights` of a compressed-tensors group whose format is "pack-quantized".
PackedFormat ReadPackQuantized(const HfConfig& weights);

// The whole of it, of quant_method "gptq" (AutoGPTQ, GPTQModel) and "awq" (AutoAWQ).
PackedFormat ReadGptq(const HfConfig& config);
PackedFormat ReadAwq(const HfConfig& config);

}  // namespace godwit
