#include "engine/storage_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/kv_store.h"
#include "base/error.h"
#include "model/loader.h"

namespace godwit {
namespace {

using ::testing::ElementsAre;

TEST(StorageTypes, EveryNameIsItsType) {
  for (const WeightType& type : kWeightTypes) EXPECT_EQ(ParseWeightType(type.name), type.dtype);
  for (const KvType& type : kKvTypes) EXPECT_EQ(ParseKvType(type.name), type.dtype);
  EXPECT_EQ(ParseWeightType("auto"), std::nullopt);
  EXPECT_EQ(ParseKvType("auto"), std::nullopt);
}

TEST(StorageTypes, OtherNamesAreRefusedWithTheList) {
  EXPECT_THAT(WeightTypeNames(), ElementsAre("auto", "f32", "bf16", "int8"));
  EXPECT_THAT(KvTypeNames(), ElementsAre("auto", "f32", "f16", "bf16", "int8"));
  for (const auto name : {"", "int4", "F32", "auto "}) {
    EXPECT_THROW(ParseWeightType(name), Error) << name;
    EXPECT_THROW(ParseKvType(name), Error) << name;
  }
}

}  // namespace
}  // namespace godwit
