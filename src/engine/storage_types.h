// The names by which users choose how weights, keys and values are stored. The lists are
// model/loader.h, kWeightTypes, and ops/kv_layout.h, kKvTypes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/decoder.h"
#include "ops/kv_layout.h"
#include "tensor/dtype.h"

namespace godwit {

// "auto" means: weights as in the checkpoint, a KV cache by the weights.
inline constexpr std::string_view kAutoType = "auto";

// Parse a name; nothing for "auto". Throw Error(kInput) with the list for a name that is not in it.
std::optional<DType> ParseWeightType(std::string_view name);
std::optional<DType> ParseKvType(std::string_view name);

// Returns the type of keys and values: `name`, or for "auto" the one that holds them as well as the
// layers' weights hold theirs. It is f32 if those are f32. It is f16 if those are f16: their author
// computed in f16, so no key is beyond its range. Else it is bf16. Throws as ParseKvType does.
DType ChooseKvType(std::string_view name, const WeightTypes& weights);

// Whether attention over keys and values of this type multiplies int8: as wished for
// (SessionOptions::int8_attention), else where they are int8.
inline bool ChooseInt8Attention(std::optional<bool> wish, DType kv_type) {
  return wish.value_or(HasIntegers(kv_type));
}

// "int8": a type as these names have it.
std::string StorageName(DType dtype);
// "int8", "int8 (head bf16)", "mostly int8 (head bf16)".
std::string StorageName(const WeightTypes& weights);

// "auto", "f32", ...
std::vector<std::string> WeightTypeNames();
std::vector<std::string> KvTypeNames();

}  // namespace godwit
