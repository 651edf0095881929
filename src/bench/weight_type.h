// The storage types that bench can ask for, by the names of its flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace godwit::bench {

// "f32, f16, bf16"
std::string WeightTypeNames();

std::string_view WeightTypeName(DType dtype);

// nullopt for "auto". Throws Error(kInput) with the names.
std::optional<DType> ParseWeightType(std::string_view name);

// As SessionOptions::kv_type; "auto" follows the weights.
DType ParseKvType(std::string_view name, DType weights);

}  // namespace godwit::bench
