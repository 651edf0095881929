// The nearest known family of a model with an unknown one, and what that family lacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// The family that reads most of a config.json. The likeness is one of words: the model may compute
// something else all the same.
struct NearestFamily {
  std::string_view model_type;
  std::optional<DecoderSpec> spec;  // the family's description of the config; none if it refuses it
  // The functions that the config asks for and the family lacks, in words; empty: none.
  std::string missing;
};

NearestFamily FindNearestFamily(const HfConfig& config);

// Throws Error(kUnsupported) that names the nearest family, what is missing, and all families.
// tensors: a remark on the tensors, or empty.
[[noreturn]] void RefuseFamily(const HfConfig& config, const NearestFamily& nearest,
                               std::string_view tensors = "");

}  // namespace godwit
