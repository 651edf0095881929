#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "model/archs/families.h"

namespace godwit::bloom_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Bloom(const std::string& fields) {
  return DescribeBloom(HfConfig::Parse(
      fmt::format(R"({{"model_type":"bloom","vocab_size":11,{}}})", fields), "config.json"));
}

constexpr const char* kSizes = R"("hidden_size":16,"n_layer":2,"n_head":4)";

std::string Refusal(const std::string& fields) {
  return ErrorOf(ErrorKind::kFormat, [&] { Bloom(fmt::format("{},{}", kSizes, fields)); });
}

TEST(BloomTest, ASilentConfig) {
  const DecoderSpec spec = Bloom(kSizes);
  EXPECT_EQ(spec.topology, Topology::kSequential);
  EXPECT_EQ(spec.norm, ops::NormKind::kLayer);
  EXPECT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_TRUE(spec.embedding_norm && spec.norm_bias && spec.final_norm);
  EXPECT_TRUE(spec.qkv_bias && spec.attention_out_bias && spec.mlp.bias && spec.tied_head);
  EXPECT_EQ(spec.qkv_layout, QkvLayout::kGrouped);
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_EQ(spec.mlp.intermediate, 64);
  EXPECT_FALSE(spec.mlp.gated);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kGeluTanh);
  EXPECT_EQ(spec.max_context, 2048);
  EXPECT_THAT(spec.alibi.slopes, ElementsAre(0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f));
  EXPECT_EQ(spec.alibi.scale, 1);
  EXPECT_FALSE(spec.alibi.in_bf16);
  EXPECT_EQ(spec.rotary.rotary_dim, 0);
}

TEST(BloomTest, SpeaksOfItsSizesInSeveralWays) {
  const DecoderSpec spec =
      Bloom(R"("n_embed":28,"num_hidden_layers":3,"num_attention_heads":7,"seq_length":4096)");
  EXPECT_EQ(spec.hidden_size, 28);
  EXPECT_EQ(spec.layers, 3);
  EXPECT_EQ(spec.heads, 7);
  EXPECT_EQ(spec.max_context, 4096);
  EXPECT_EQ(Bloom(R"("hidden_size":16,"n_embed":16,"n_layer":2,"n_head":4)").hidden_size, 16);
}

TEST(BloomTest, RefusesWhatIsNotBuiltAndWhatContradicts) {
  EXPECT_THAT(Refusal(R"("apply_residual_connection_post_layernorm":true)"),
              HasSubstr("config.json: apply_residual_connection_post_layernorm: expected false"));
  EXPECT_THAT(Refusal(R"("n_inner":32)"), HasSubstr("n_inner: expected 4 times the hidden size"));
  EXPECT_THAT(Refusal(R"("n_embed":32)"), HasSubstr("n_embed: expected 16"));
  EXPECT_THAT(Refusal(R"("num_attention_heads":2)"), HasSubstr("num_attention_heads: expected 4"));
  EXPECT_THAT(Refusal(R"("num_hidden_layers":1)"), HasSubstr("num_hidden_layers: expected 2"));
  EXPECT_THAT(Refusal(R"("layer_norm_epsilon":-1)"), HasSubstr("layer_norm_epsilon"));
  EXPECT_EQ(Bloom(fmt::format(R"({},"n_inner":64)", kSizes)).mlp.intermediate, 64);
}

}  // namespace
}  // namespace godwit::bloom_test
