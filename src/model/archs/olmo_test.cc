#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::olmo_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OlmoTest, TheFirstHasNormsWithoutWeights) {
  const DecoderSpec spec = SmallSpecOf("olmo");
  EXPECT_EQ(spec.norm, ops::NormKind::kLayer);
  EXPECT_FALSE(spec.norm_gain || spec.clip_qkv || spec.output_norms);
  EXPECT_EQ(SmallSpecOf("olmo", R"("clip_qkv":8)").clip_qkv, 8.0f);
}

TEST(OlmoTest, TheOthersNormaliseWhatBlocksPutOut) {
  for (const char* type : {"olmo2", "olmo3"}) {
    const DecoderSpec spec = SmallSpecOf(type);
    EXPECT_TRUE(spec.output_norms && !spec.input_norms);
    EXPECT_EQ(spec.qk_norm, QkNorm::kAllHeads);
    EXPECT_EQ(spec.norm_epsilon, 1e-5f);
    EXPECT_FALSE(spec.qkv_bias);
  }
}

TEST(OlmoTest, TheThirdStretchesLayersWithoutAWindow) {
  const DecoderSpec spec = SmallSpecOf(
      "olmo3", R"("sliding_window":9,"layer_types":["sliding_attention","full_attention"],)"
               R"("rope_scaling":{"rope_type":"yarn","factor":8,)"
               R"("original_max_position_embeddings":8})");
  EXPECT_THAT(WindowsOf(spec), ElementsAre(9, 0));
  EXPECT_EQ(KindOf(spec, 0).rotary.scaling.kind, RotaryScaling::Kind::kNone);
  EXPECT_EQ(KindOf(spec, 0).rotary.theta, 5e5);
  EXPECT_EQ(KindOf(spec, 1).rotary.scaling.kind, RotaryScaling::Kind::kYarn);
  EXPECT_THAT(
      ErrorOf(ErrorKind::kFormat, [] { SmallSpecOf("olmo3", R"("sliding_window":"all")"); }),
      HasSubstr("sliding_window"));
}

}  // namespace
}  // namespace godwit::olmo_test
