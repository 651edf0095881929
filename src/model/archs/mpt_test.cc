#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "model/archs/families.h"

namespace godwit::mpt_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Mpt(const std::string& fields = "", int heads = 4) {
  return DescribeMpt(HfConfig::Parse(
      fmt::format(R"({{"model_type":"mpt","vocab_size":11,"d_model":{},"n_layers":2,)"
                  R"("n_heads":{}{}{}}})",
                  heads * 4, heads, fields.empty() ? "" : ",", fields),
      "config.json"));
}

std::string Refusal(const std::string& fields) {
  return ErrorOf(ErrorKind::kFormat, [&] { Mpt(fields); });
}

TEST(MptTest, ASilentConfig) {
  const DecoderSpec spec = Mpt();
  EXPECT_EQ(spec.topology, Topology::kSequential);
  EXPECT_EQ(spec.qkv_layout, QkvLayout::kFused);
  EXPECT_EQ(spec.norm, ops::NormKind::kLayer);
  EXPECT_FALSE(spec.norm_bias || spec.qkv_bias || spec.attention_out_bias || spec.mlp.bias);
  EXPECT_EQ(spec.mlp.intermediate, 64);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kGeluErf);
  EXPECT_EQ(spec.max_context, 2048);
  EXPECT_TRUE(spec.tied_head);
  EXPECT_EQ(spec.rotary.rotary_dim, 0);
  EXPECT_FALSE(spec.clip_qkv || spec.score_scale);
  EXPECT_EQ(Geometry(spec).shape.scale, 0.5f);
  EXPECT_FALSE(spec.alibi.in_bf16);
}

TEST(MptTest, SlopesFallToTwoToTheMinusBiasMax) {
  EXPECT_THAT(Mpt().alibi.slopes, ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f));
  // The slopes of eight heads, even ones first.
  EXPECT_THAT(Mpt("", 6).alibi.slopes,
              ElementsAre(0.25f, 0.0625f, 0.015625f, 0.00390625f, 0.5f, 0.125f));
  EXPECT_THAT(Mpt(R"("attn_config":{"alibi_bias_max":16})", 2).alibi.slopes,
              ElementsAre(0.00390625f, 0.0000152587890625f));
}

TEST(MptTest, ReadsWhatItsVariationsState) {
  EXPECT_EQ(Mpt(R"("attn_config":{"clip_qkv":6})").clip_qkv, 6.0f);
  EXPECT_FALSE(Mpt(R"("attn_config":{"clip_qkv":0})").clip_qkv);
  EXPECT_EQ(Geometry(Mpt(R"("attn_config":{"softmax_scale":0.25})")).shape.scale, 0.25f);
  EXPECT_EQ(Mpt(R"("expansion_ratio":3)").mlp.intermediate, 48);
  EXPECT_EQ(Mpt(R"("max_seq_len":65536)").max_context, 65536);
  EXPECT_FALSE(Mpt(R"("tie_word_embeddings":false)").tied_head);
}

TEST(MptTest, RefusesWhatIsNotBuilt) {
  EXPECT_THAT(Refusal(R"("attn_config":{"qk_ln":true})"),
              HasSubstr("config.json: attn_config.qk_ln: expected false"));
  EXPECT_THAT(Refusal(R"("attn_config":{"alibi":false})"), HasSubstr("attn_config.alibi"));
  EXPECT_THAT(Refusal(R"("attn_config":{"prefix_lm":true})"), HasSubstr("attn_config.prefix_lm"));
  EXPECT_THAT(Refusal(R"("attn_config":{"attn_type":"multiquery_attention"})"),
              HasSubstr("attn_config.attn_type"));
  EXPECT_THAT(Refusal(R"("attn_config":{"clip_qkv":-1})"), HasSubstr("attn_config.clip_qkv"));
  EXPECT_THAT(Refusal(R"("attn_config":{"alibi_bias_max":0})"), HasSubstr("alibi_bias_max"));
  EXPECT_THAT(Refusal(R"("attn_config":{"softmax_scale":0})"), HasSubstr("softmax_scale"));
  EXPECT_THAT(Refusal(R"("no_bias":false)"), HasSubstr("no_bias: expected true"));
  EXPECT_THAT(Refusal(R"("norm_type":"rmsnorm")"), HasSubstr("norm_type"));
  EXPECT_THAT(Refusal(R"("logit_scale":"inv_sqrt_d_model")"), HasSubstr("logit_scale"));
  EXPECT_THAT(Refusal(R"("expansion_ratio":0)"), HasSubstr("expansion_ratio"));
}

}  // namespace
}  // namespace godwit::mpt_test
