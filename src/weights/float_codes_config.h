// The `quantization_config` of layers whose weights are floats of 4 or 8 bits
// (weights/packed_format.h).
//
// Inputs in such floats are no part of a format: they are rounded in another way here, or not at
// all.
#pragma once

#include <string>
#include <vector>

#include "weights/hf_config.h"
#include "weights/packed_format.h"

namespace godwit {

// Each throws Error(kUnsupported) that names the key for types, bits, groups and variants that are
// not supported, and Error(kFormat) for what is no such configuration.

// The `weights` of a compressed-tensors group, by the format of the group: "float-quantized" (or
// "naive-quantized"), "nvfp4-pack-quantized", "mxfp4-pack-quantized", "mxfp8-quantized".
PackedFormat ReadFloatQuantized(const HfConfig& weights);
PackedFormat ReadNvfp4(const HfConfig& weights);
PackedFormat ReadMxfp4(const HfConfig& weights);
PackedFormat ReadMxfp8(const HfConfig& weights);
// Refuses `input_activations` of a group unless there are none, or they are floats.
void ExpectFloatInputs(const HfConfig& group);

// The whole of it, of quant_method "fp8". DeepSeek V3, Qwen3, GLM and MiniMax M2 come in blocks,
// AutoFP8's and Mistral's have a scale for each tensor.
PackedFormat ReadFp8(const HfConfig& config);

// The whole of it, of quant_method "modelopt", NVIDIA's, and the layers that it leaves in float.
// `*` in a name stands for any characters.
struct ModelOptConfig {
  PackedFormat format;
  std::vector<std::string> ignored;
};
ModelOptConfig ReadModelOpt(const HfConfig& config);

// The formats of quant_method "mxfp4", in which gpt-oss's experts are, and "fbgemm_fp8".
inline constexpr PackedFormat kMxfp4 = {.layout = PackedFormat::Layout::kFloats4,
                                        .group = 32,
                                        .scale_type = PackedFormat::ScaleType::kPowers,
                                        .codes_suffix = "_blocks",
                                        .scales_suffix = "_scales"};
inline constexpr PackedFormat kFbgemmFp8 = {.layout = PackedFormat::Layout::kFloats8,
                                            .bits = 8,
                                            .codes_suffix = ".weight",
                                            .scales_suffix = ".weight_scale"};

// The other ending of FP8's scales. Tools differ in it, not in the meaning: weights are multiplied.
std::string_view OtherScalesSuffix(const PackedFormat& format);

}  // namespace godwit
