#include "bench/weight_type.h"

#include "base/error.h"
#include "base/quote.h"

namespace godwit::bench {
namespace {

struct WeightType {
  std::string_view name;
  DType dtype;
};

// int8 is a line more when the loader makes such weights.
constexpr WeightType kWeightTypes[] = {
    {"f32", DType::kF32}, {"f16", DType::kF16}, {"bf16", DType::kBF16}};

}  // namespace

std::string WeightTypeNames() {
  std::string names;
  for (const WeightType& type : kWeightTypes) {
    names += names.empty() ? "" : ", ";
    names += type.name;
  }
  return names;
}

std::string_view WeightTypeName(DType dtype) {
  for (const WeightType& type : kWeightTypes) {
    if (type.dtype == dtype) return type.name;
  }
  return Name(dtype);
}

std::optional<DType> ParseWeightType(std::string_view name) {
  if (name == "auto") return std::nullopt;
  for (const WeightType& type : kWeightTypes) {
    if (type.name == name) return type.dtype;
  }
  Throw(ErrorKind::kInput, "expected auto, {}, found {}", WeightTypeNames(), Quote(name));
}

DType ParseKvType(std::string_view name, DType weights) {
  const DType follows = weights == DType::kF32 ? DType::kF32 : DType::kBF16;
  return ParseWeightType(name).value_or(follows);
}

}  // namespace godwit::bench
