// The `quantization_config` of layers that are packed in groups (weights/packed_format.h), with
// codes that are integers or nf4.
#pragma once

#include <string>

#include "weights/hf_config.h"
#include "weights/packed_format.h"
#include "weights/weight_source.h"

namespace godwit {

// Each throws Error(kUnsupported) that names the key for bits, groups and variants that are not
// supported, and Error(kFormat) for what is no such configuration.

// The strategy of compressed-tensors' QuantizationArgs. Where it is absent, the group size says it.
std::string StrategyOf(const HfConfig& arguments);

// The `weights` of a compressed-tensors group whose format is "pack-quantized"; and
// "int-quantized", of groups.
PackedFormat ReadPackQuantized(const HfConfig& weights);
PackedFormat ReadIntQuantized(const HfConfig& weights);

// The whole of it, of quant_method "gptq" (AutoGPTQ, GPTQModel) and "awq" (AutoAWQ).
PackedFormat ReadGptq(const HfConfig& config);
PackedFormat ReadAwq(const HfConfig& config);

// The format of quant_method "bitsandbytes" with load_in_4bit.
PackedFormat ReadNf4(const HfConfig& config);

// The quant_state of an nf4 weight, U8: JSON that bitsandbytes writes beside it.
struct Nf4State {
  int64_t nested_group = 0;  // groups that share a scale of scales
  float nested_offset = 0;
};

// Reads a quant_state. Throws Error that names the tensor if it is not nf4 of this shape in groups
// as config.json has them. Throws Error(kFormat) for bytes that are no such state.
Nf4State ReadNf4State(const TensorInfo& state, const PackedFormat& format, int64_t outputs,
                      int64_t inputs);

// Throws Error(kUnsupported) that names the tensor unless these are the levels of nf4: F32 [16].
void CheckNf4Levels(const TensorInfo& levels);

}  // namespace godwit
