// Fields that several families of GGUF share, in the words of config.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "model/gguf_family.h"

namespace godwit {

// The range of sizes and counts. Readers of the config.json have ranges of their own; this one
// protects arithmetic before.
inline constexpr IntRange kSizeRange{1, int64_t{1} << 40};

// The rotated part of the dimensions of a head. It is a little more than the quotient, which is
// multiplied and cut off where it is read.
double RotatedPart(const GgufMetadata& metadata, const GgufShape& shape);

// Throws Error(kUnsupported) where a part of a head does not rotate.
void RequireWholeRotation(const GgufMetadata& metadata, const GgufShape& shape);

// Reads layer_types, where there is a window and attention.sliding_window_pattern says which layers
// have it. It says so for each layer, or by a period of which the last layer has none. Throws
// Error(kFormat) for a list that has not one for each layer.
void ReadWindowPattern(const GgufMetadata& metadata, nlohmann::json& config);

}  // namespace godwit
