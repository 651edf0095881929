// How the tensors of a checkpoint differ from those of a family that is near to its own.
#pragma once

#include <span>
#include <string>

#include "model/spec.h"

namespace godwit {

// In words, layers and experts taken together: "it has no model.layers.*.mlp.up_proj.weight and
// has model.layers.*.mlp.fc1.weight". Looks at names alone.
std::string TensorDifferences(const DecoderSpec& spec, std::span<const std::string> names);

}  // namespace godwit
