#include "engine/storage_types.h"

#include <span>

#include "base/error.h"
#include "base/name_list.h"
#include "base/quote.h"
#include "model/loader.h"
#include "ops/kv_layout.h"

namespace godwit {
namespace {

template <typename Type>
std::vector<std::string> WithAuto(std::span<const Type> types) {
  std::vector<std::string> names = Names(types, &Type::name);
  names.emplace(names.begin(), kAutoType);
  return names;
}

template <typename Type>
std::optional<DType> Parse(std::string_view name, std::string_view what,
                           std::span<const Type> types) {
  if (name == kAutoType) return std::nullopt;
  for (const Type& type : types) {
    if (type.name == name) return type.dtype;
  }
  Throw(ErrorKind::kInput, "expected {} as {}, found {}",
        NameList(WithAuto(types), std::identity(), " or "), what, Quote(name));
}

}  // namespace

std::optional<DType> ParseWeightType(std::string_view name) {
  return Parse<WeightType>(name, "weight type", kWeightTypes);
}
std::optional<DType> ParseKvType(std::string_view name) {
  return Parse<KvType>(name, "KV type", kKvTypes);
}

DType ChooseKvType(std::string_view name, const WeightTypes& weights) {
  const bool wide = weights.layers == DType::kF32 || weights.layers == DType::kF16;
  return ParseKvType(name).value_or(wide ? weights.layers : DType::kBF16);
}

std::string StorageName(DType dtype) {
  for (const WeightType& type : kWeightTypes) {
    if (type.dtype == dtype) return std::string(type.name);
  }
  return std::string(KvTypeName(dtype));
}

std::string StorageName(const WeightTypes& weights) {
  const auto name_of = [](DType dtype, std::string_view blocks) {
    return blocks.empty() ? StorageName(dtype) : std::string(blocks);
  };
  const std::string layers = name_of(weights.layers, weights.layer_blocks);
  const std::string head = name_of(weights.head, weights.head_blocks);
  return (weights.mixed ? "mostly " : "") + layers + (head == layers ? "" : " (head " + head + ")");
}

std::vector<std::string> WeightTypeNames() { return WithAuto<WeightType>(kWeightTypes); }
std::vector<std::string> KvTypeNames() { return WithAuto<KvType>(kKvTypes); }

}  // namespace godwit
