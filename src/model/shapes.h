// Models without a checkpoint: the dimensions of common sizes, for synthetic weights.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/spec.h"

namespace godwit {

struct ModelShape {
  std::string_view name;         // "1b"
  std::string_view description;  // one line for people
  std::string_view config;       // config.json, as Hugging Face writes it
};

std::span<const ModelShape> AllShapes();

// One of AllShapes() or a path to a config.json. Throws Error(kInput) with the list for a name
// that is neither, and what reading a config.json throws.
DecoderSpec FindShape(const std::string& name);

}  // namespace godwit
