#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::phi3_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Phi3Test, OneTensorForQkvAndOneForGateAndUp) {
  const DecoderSpec spec = SmallSpecOf("phi3");
  EXPECT_EQ(spec.qkv_layout, QkvLayout::kFused);
  EXPECT_TRUE(spec.mlp.fused);
  EXPECT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(0, 0));
  EXPECT_THAT(WindowsOf(SmallSpecOf("phi3", R"("sliding_window":9)")), ElementsAre(9, 9));
}

TEST(Phi3Test, AFactorForEveryPairThatRotates) {
  const std::string rope = R"("partial_rotary_factor":0.5,"original_max_position_embeddings":8,)"
                           R"("rope_scaling":{"type":"longrope",)";
  const DecoderSpec spec = SmallSpecOf("phi3", rope + R"("short_factor":[1],"long_factor":[4]})");
  EXPECT_EQ(spec.rotary.rotary_dim, 2);
  EXPECT_TRUE(Geometry(spec).RotatesByContext());
  EXPECT_EQ(DefaultContext(spec), 8);
  EXPECT_THAT(
      ErrorOf(ErrorKind::kFormat,
              [&] { SmallSpecOf("phi3", rope + R"("short_factor":[1],"long_factor":[4,4]})"); }),
      HasSubstr("long_factor: expected a list of numbers, one for each of 1 rotary"));
}

}  // namespace
}  // namespace godwit::phi3_test
