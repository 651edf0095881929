// What several families of GGUF say alike of themselves, in the words of config.json.
//
// Internal to src/weights.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "weights/gguf_families.h"

namespace godwit {

// Of sizes and counts. Whoever reads the config.json has ranges of its own; this keeps arithmetic
// from harm before.
inline constexpr IntRange kSizeRange{1, int64_t{1} << 40};

// Of the dimensions of a head. A little more than the quotient, which is multiplied and cut off
// where it is read.
double RotatedPart(const GgufMetadata& metadata, const GgufShape& shape);

// Throws Error(kUnsupported) where a part of a head does not rotate.
void RequireWholeRotation(const GgufMetadata& metadata, const GgufShape& shape);

// layer_types, where there is a window and attention.sliding_window_pattern says which layers have
// it: for each of them, or by a period of which the last layer has none. Throws Error(kFormat) for
// a list that has not one for each layer.
void ReadWindowPattern(const GgufMetadata& metadata, nlohmann::json& config);

}  // namespace godwit
