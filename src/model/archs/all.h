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
  // The key of the object that describes the text model, for a model that also sees pictures.
  std::string_view text_config = {};
};

std::span<const Architecture> AllArchitectures();

// Finds an architecture; nullptr if there is none of this model_type.
const Architecture* FindArchitecture(std::string_view model_type);

// Describes the model of a config. Throws Error(kUnsupported) with the nearest family and all
// others (archs/nearest_family.h). It is also thrown for requests of a known family that the engine
// cannot meet (model/unread_keys.h). Throws Error(kFormat) for fields out of range.
DecoderSpec DescribeModel(const HfConfig& config);

}  // namespace godwit
