#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "model/archs/families.h"

namespace godwit::opt_test {
namespace {

using ::testing::HasSubstr;

DecoderSpec Opt(const std::string& fields = "") {
  return DescribeOpt(HfConfig::Parse(
      fmt::format(R"({{"model_type":"opt","vocab_size":11,"hidden_size":16,"num_hidden_layers":2,)"
                  R"("num_attention_heads":4,"ffn_dim":20{}{}}})",
                  fields.empty() ? "" : ",", fields),
      "config.json"));
}

std::string Refusal(const std::string& fields, ErrorKind kind = ErrorKind::kFormat) {
  return ErrorOf(kind, [&] { Opt(fields); });
}

TEST(OptTest, ASilentConfig) {
  const DecoderSpec spec = Opt();
  EXPECT_EQ(spec.topology, Topology::kSequential);
  EXPECT_EQ(spec.norm, ops::NormKind::kLayer);
  EXPECT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_TRUE(spec.norm_gain && spec.norm_bias && spec.final_norm);
  EXPECT_TRUE(spec.qkv_bias && spec.attention_out_bias && spec.mlp.bias);
  EXPECT_FALSE(spec.mlp.gated || spec.embedding_norm || spec.output_norms);
  EXPECT_EQ(spec.mlp.intermediate, 20);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kRelu);
  EXPECT_EQ(spec.max_context, 2048);
  EXPECT_EQ(spec.first_learned_position, 2);
  EXPECT_EQ(Geometry(spec).learned_positions, 2048);
  EXPECT_EQ(spec.rotary.rotary_dim, 0);
  EXPECT_FALSE(spec.embedding_size);
  EXPECT_TRUE(spec.tied_head);
}

TEST(OptTest, WhereTheNormsStand) {
  EXPECT_EQ(Opt(R"("do_layer_norm_before":false)").topology, Topology::kPostNorm);
  EXPECT_FALSE(Opt(R"("do_layer_norm_before":false)").final_norm);
  EXPECT_FALSE(Opt(R"("_remove_final_layer_norm":true)").final_norm);
  EXPECT_EQ(Opt(R"("_remove_final_layer_norm":true)").topology, Topology::kSequential);
  EXPECT_FALSE(Opt(R"("layer_norm_elementwise_affine":false)").norm_gain);
}

TEST(OptTest, ReadsWhatItsVariationsState) {
  EXPECT_EQ(Opt(R"("word_embed_proj_dim":8)").embedding_size, 8);
  EXPECT_FALSE(Opt(R"("word_embed_proj_dim":16)").embedding_size);
  EXPECT_FALSE(Opt(R"("word_embed_proj_dim":null)").embedding_size);
  EXPECT_EQ(Opt(R"("activation_function":"gelu")").mlp.activation, ops::Activation::kGeluErf);
  const DecoderSpec galactica = Opt(R"("enable_bias":false)");
  EXPECT_FALSE(galactica.qkv_bias || galactica.attention_out_bias || galactica.mlp.bias);
  EXPECT_TRUE(galactica.norm_bias);
  EXPECT_EQ(Geometry(Opt(R"("max_position_embeddings":100)")).learned_positions, 100);
}

TEST(OptTest, RefusesWhatItCannotBe) {
  EXPECT_THAT(Refusal(R"("word_embed_proj_dim":0)"), HasSubstr("word_embed_proj_dim"));
  EXPECT_THAT(Refusal(R"("do_layer_norm_before":1)"), HasSubstr("do_layer_norm_before"));
  EXPECT_THAT(Refusal(R"("enable_bias":"yes")"), HasSubstr("enable_bias"));
  EXPECT_THAT(Refusal(R"("activation_function":"tanh")", ErrorKind::kUnsupported),
              HasSubstr("activation_function"));
  EXPECT_THAT(Refusal(R"("max_position_embeddings":4294967296)"),
              HasSubstr("max_position_embeddings: expected at most 16777216"));
}

}  // namespace
}  // namespace godwit::opt_test
