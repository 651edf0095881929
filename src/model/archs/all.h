// The list of architectures, and the choice among them by config.json's model_type.
#pragma once

#include <span>
#include <string_view>

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

struct Architecture {
  std::string_view model_type;  // as config.json spells it
  std::string_view description;
  DecoderSpec (*describe)(const HfConfig& config);
  // Of a model that sees, too: the key of the object that describes how it reads and writes.
  std::string_view text_config = {};
};

std::span<const Architecture> AllArchitectures();

// nullptr where there is none of this model_type.
const Architecture* FindArchitecture(std::string_view model_type);

// Throws Error(kUnsupported) with the nearest family and all others (archs/nearest_family.h), and
// for what a model of this type asks for and the engine has not (model/unread_keys.h),
// Error(kFormat) for fields out of range.
DecoderSpec DescribeModel(const HfConfig& config);

}  // namespace godwit
