// Whether two descriptions are of the same model.
#pragma once

#include <optional>
#include <string>

#include "model/spec.h"

namespace godwit {

// The first difference in what two specs compute, "rope theta: 10000, and would be read as 500000";
// nullopt: none. Names of tensors, their layout in a checkpoint and the family are no difference.
// Neither is a number that differs in its seventh digit, since files hold F32.
std::optional<std::string> SpecDifference(const DecoderSpec& wanted, const DecoderSpec& found);

}  // namespace godwit
