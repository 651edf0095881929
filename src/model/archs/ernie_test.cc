#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_test_support.h"

namespace godwit::ernie_test {
namespace {

using ::testing::ElementsAre;

TEST(Ernie45Test, ASilentConfig) {
  const DecoderSpec spec = SmallSpecOf("ernie4_5");
  EXPECT_EQ(spec.head_dim, 128);
  EXPECT_EQ(spec.rotary.theta, 5e5);
  EXPECT_TRUE(spec.interleaved_rotary && spec.tied_head);
  EXPECT_FALSE(spec.qkv_bias || spec.attention_out_bias || spec.mlp.bias);
  EXPECT_EQ(SmallSpecOf("ernie4_5", R"("head_dim":null)").head_dim, 4);
  const DecoderSpec biased = SmallSpecOf("ernie4_5", R"("use_bias":true)");
  EXPECT_TRUE(biased.qkv_bias && biased.attention_out_bias && biased.mlp.bias);
}

// A model of 6 layers.
DecoderSpec Moe(const std::string& fields = "") {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type":"ernie4_5_moe","vocab_size":11,"hidden_size":16,"num_hidden_layers":6,)"
      R"("num_attention_heads":4,"intermediate_size":10,"max_position_embeddings":64)" +
          (fields.empty() ? "" : "," + fields) + "}",
      "config.json"));
}

TEST(Ernie45MoeTest, ASilentConfig) {
  const DecoderSpec spec = Moe();
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(0, 64, 64, 64, 64, 64));
  EXPECT_EQ(spec.mlp.experts_per_token, 6);
  EXPECT_EQ(spec.mlp.choice.score, ops::ExpertScore::kPart);
  EXPECT_TRUE(spec.mlp.choice_bias && spec.mlp.shares_among_chosen);
  EXPECT_EQ(spec.shared_mlp.intermediate, 2 * 1536);
}

TEST(Ernie45MoeTest, SomeLayersHaveExperts) {
  EXPECT_THAT(ExpertsOf(Moe(R"("moe_layer_interval":2,"moe_layer_end_index":4)")),
              ElementsAre(0, 64, 0, 64, 0, 0));
  EXPECT_THAT(ExpertsOf(Moe(R"("moe_layer_start_index":5)")), ElementsAre(0, 0, 0, 0, 0, 64));
  EXPECT_EQ(ErrorOf([] { Moe(R"("moe_k":65)"); }).kind(), ErrorKind::kFormat);
  EXPECT_EQ(ErrorOf([] { Moe(R"("use_bias":true)"); }).kind(), ErrorKind::kUnsupported)
      << "the head would have one";
}

}  // namespace
}  // namespace godwit::ernie_test
