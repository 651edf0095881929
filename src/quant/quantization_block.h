// The "quantization_config" of a config.json: in the compressed-tensors formats "int-quantized" and
// "pack-quantized", or in that of bitsandbytes for LLM.int8().
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "quant/scheme.h"
#include "weights/hf_config.h"

namespace godwit::quant {

// The keys that every version of compressed-tensors knows, and no others: its readers refuse
// unknown ones. For bitsandbytes: all keys that transformers writes. ignore: modules that stay in
// float. int8: modules of 8 bits in a 4-bit scheme.
nlohmann::ordered_json QuantizationBlock(const Scheme& scheme,
                                         const std::vector<std::string>& ignore,
                                         const std::vector<std::string>& int8 = {});

// Throws Error(kUnsupported) if the model in `folder` is quantized already.
void RefuseQuantized(const HfConfig& config, const std::string& folder);

}  // namespace godwit::quant
