// What the readers of a `quantization_config` share: fields that must be what they are here.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "weights/hf_config.h"

namespace godwit {

// All throw Error(kUnsupported) that names the key, NeedObject Error(kFormat).
void ExpectOneOf(const HfConfig& config, std::string_view key, std::string_view found,
                 std::initializer_list<std::string_view> accepted);
void ExpectBool(const HfConfig& config, std::string_view key, bool expected, bool fallback);
HfConfig NeedObject(const HfConfig& config, std::string_view key);

// Of compressed-tensors' QuantizationArgs. Where it is absent, the group size says it.
std::string StrategyOf(const HfConfig& arguments);

}  // namespace godwit
