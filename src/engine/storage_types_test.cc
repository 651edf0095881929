#include "engine/storage_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "model/loader.h"
#include "ops/kv_layout.h"

namespace godwit::storage_types_test {
namespace {

using ::testing::ElementsAre;

TEST(StorageTypes, EveryNameIsItsType) {
  for (const WeightType& type : kWeightTypes) EXPECT_EQ(ParseWeightType(type.name), type.dtype);
  for (const KvType& type : kKvTypes) EXPECT_EQ(ParseKvType(type.name), type.dtype);
  EXPECT_EQ(ParseWeightType("auto"), std::nullopt);
  EXPECT_EQ(ParseKvType("auto"), std::nullopt);
}

TEST(StorageTypes, OtherNamesAreRefusedWithTheList) {
  EXPECT_THAT(WeightTypeNames(), ElementsAre("auto", "f32", "bf16", "int8", "int4"));
  EXPECT_THAT(KvTypeNames(), ElementsAre("auto", "f32", "f16", "bf16", "int8", "k8v4", "int4"));
  for (const auto name : {"", "int2", "F32", "auto "}) {
    EXPECT_THROW(ParseWeightType(name), Error) << name;
    EXPECT_THROW(ParseKvType(name), Error) << name;
  }
}

TEST(StorageTypes, ACacheFollowsTheLayers) {
  const auto choose = [](std::string_view name, DType layers, DType head) {
    return ChooseKvType(name, {.layers = layers, .head = head});
  };
  EXPECT_EQ(choose("auto", DType::kF32, DType::kF32), DType::kF32);
  EXPECT_EQ(choose("auto", DType::kF16, DType::kF16), DType::kF16);
  EXPECT_EQ(choose("auto", DType::kBF16, DType::kBF16), DType::kBF16);
  EXPECT_EQ(choose("auto", DType::kI8, DType::kI8), DType::kBF16);
  EXPECT_EQ(choose("auto", DType::kI8, DType::kF32), DType::kBF16);
  EXPECT_EQ(choose("f32", DType::kI8, DType::kI8), DType::kF32);
}

TEST(StorageTypes, AModelIsNamedByItsLayers) {
  EXPECT_EQ(StorageName({.layers = DType::kBF16, .head = DType::kBF16}), "bf16");
  EXPECT_EQ(StorageName({.layers = DType::kI8, .head = DType::kBF16}), "int8 (head bf16)");
  EXPECT_EQ(StorageName({.layers = DType::kI8, .mixed = true, .head = DType::kF32}),
            "mostly int8 (head f32)");
}

}  // namespace
}  // namespace godwit::storage_types_test
