// Of a model whose family is not among those here: which of them is nearest, and what it lacks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/spec.h"
#include "weights/hf_config.h"

namespace godwit {

// The family that reads most of a config.json. That is a likeness of words: the model may compute
// something else all the same.
struct NearestFamily {
  std::string_view model_type;
  std::optional<DecoderSpec> spec;  // as that family describes the config; none if it refuses it
  // What the config asks for and the family has not, in words; empty: it asks for nothing else.
  std::string missing;
};

NearestFamily FindNearestFamily(const HfConfig& config);

// Throws Error(kUnsupported) that names the nearest family, what is missing, and all families.
// tensors: what is to be said of the tensors, or empty.
[[noreturn]] void RefuseFamily(const HfConfig& config, const NearestFamily& nearest,
                               std::string_view tensors = "");

}  // namespace godwit
