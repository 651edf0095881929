// Whether two descriptions are of the same model.
#pragma once

#include <optional>
#include <string>

#include "model/spec.h"

namespace godwit {

// The first thing in which what they compute differs, "rope theta: 10000, and would be read as
// 500000"; nullopt: there is none. Names of tensors, how these lie in a
// checkpoint and by what family it is are no difference, nor is a number that is another in its
// seventh digit, since files hold F32.
std::optional<std::string> SpecDifference(const DecoderSpec& wanted, const DecoderSpec& found);

}  // namespace godwit
