// The names by which users choose how weights, keys and values are stored. The lists are
// model/loader.h, kWeightTypes, and attention/kv_store.h, kKvTypes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace godwit {

// "auto" means: weights as in the checkpoint, a KV cache by the weights.
inline constexpr std::string_view kAutoType = "auto";

// Nothing for "auto". Throw Error(kInput) with the list for a name that is not in it.
std::optional<DType> ParseWeightType(std::string_view name);
std::optional<DType> ParseKvType(std::string_view name);

// "int8": a type as these names have it.
std::string StorageName(DType dtype);

// "auto", "f32", ...
std::vector<std::string> WeightTypeNames();
std::vector<std::string> KvTypeNames();

}  // namespace godwit
