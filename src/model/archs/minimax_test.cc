#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_test_support.h"

namespace godwit::minimax_test {
namespace {

using ::testing::ElementsAre;

DecoderSpec M2(const std::string& fields = "") { return SmallSpecOf("minimax_m2", fields); }

TEST(MiniMaxM2Test, ASilentConfig) {
  const DecoderSpec spec = M2();
  EXPECT_EQ(spec.head_dim, 128);
  EXPECT_EQ(spec.rotary.rotary_dim, 128);
  EXPECT_EQ(spec.rotary.theta, 5e6);
  EXPECT_EQ(spec.qk_norm, QkNorm::kAllHeads);
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(256, 256));
  EXPECT_EQ(spec.mlp.experts_per_token, 8);
  EXPECT_EQ(spec.mlp.choice.score, ops::ExpertScore::kSigmoid);
  EXPECT_TRUE(spec.mlp.choice_bias);
}

TEST(MiniMaxM2Test, EitherSpellingSaysWhichPartOfAHeadRotates) {
  EXPECT_EQ(M2(R"("rotary_dim":64)").rotary.rotary_dim, 64);
  EXPECT_EQ(M2(R"("rope_parameters":{"partial_rotary_factor":0.25})").rotary.rotary_dim, 32);
  EXPECT_EQ(ErrorOf([] { M2(R"("rotary_dim":129)"); }).kind(), ErrorKind::kFormat);
}

TEST(MiniMaxM2Test, RefusesOtherLayers) {
  for (const char* fields : {R"("attn_type_list":[1,0])", R"("use_qk_norm":false)",
                             R"("qk_norm_type":"per_head")", R"("scoring_func":"softmax")"}) {
    EXPECT_EQ(ErrorOf([&] { M2(fields); }).kind(), ErrorKind::kUnsupported) << fields;
  }
}

}  // namespace
}  // namespace godwit::minimax_test
