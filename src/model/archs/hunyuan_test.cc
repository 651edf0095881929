#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/model_test_support.h"

namespace godwit::hunyuan_test {
namespace {

using ::testing::HasSubstr;

DecoderSpec Dense(const std::string& fields = "") {
  return SmallSpecOf("hunyuan_v1_dense", R"("head_dim":8)" + (fields.empty() ? "" : "," + fields));
}
DecoderSpec Moe(const std::string& fields = "") { return SmallSpecOf("hunyuan_v1_moe", fields); }

TEST(HunyuanTest, GainsFollowTheRotation) {
  EXPECT_EQ(Dense().qk_norm, QkNorm::kHeadsThenGains);
  EXPECT_EQ(Dense().norm_epsilon, 1e-5f);
  EXPECT_FALSE(BiasIsKeyMean(Dense(R"("attention_bias":true)")));
  const std::string yarn =
      R"("rope_scaling":{"type":"yarn","factor":4,"original_max_position_embeddings":16})";
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Dense(yarn); }), HasSubstr("rope_scaling"));
}

TEST(HunyuanTest, AlphaStretchesTheBase) {
  const DecoderSpec spec =
      Dense(R"("rope_theta":100,"rope_scaling":{"type":"dynamic","alpha":64,"factor":1})");
  EXPECT_DOUBLE_EQ(spec.rotary.theta, 100 * std::pow(64, 8.0 / 6));
  EXPECT_EQ(spec.rotary.scaling.kind, RotaryScaling::Kind::kNone);
  EXPECT_EQ(spec.max_context, 64);
  EXPECT_TRUE(spec.warnings.empty());
  const DecoderSpec dynamic = Dense(R"("rope_scaling":{"type":"dynamic","factor":2})");
  EXPECT_EQ(dynamic.rotary.scaling.kind, RotaryScaling::Kind::kDynamic);
}

TEST(HunyuanMoeTest, NumbersMayBeStatedForEachLayer) {
  const DecoderSpec spec =
      Moe(R"("num_experts":4,"moe_topk":[2,2],"num_shared_expert":[1,1],"use_cla":false)");
  EXPECT_EQ(spec.mlp.experts, 4);
  EXPECT_EQ(spec.mlp.experts_per_token, 2);
  EXPECT_EQ(spec.shared_mlp.intermediate, 10);
  EXPECT_EQ(Moe().mlp.experts, 1);
  for (const char* fields : {R"("num_experts":4,"moe_topk":[2,3])", R"("num_shared_expert":[1,2])",
                             R"("moe_intermediate_size":[11,11])", R"("use_cla":true)"}) {
    EXPECT_EQ(ErrorOf([&] { Moe(fields); }).kind(), ErrorKind::kUnsupported) << fields;
  }
  EXPECT_EQ(ErrorOf([] { Moe(R"("num_experts":4,"moe_topk":5)"); }).kind(), ErrorKind::kFormat);
}

}  // namespace
}  // namespace godwit::hunyuan_test
