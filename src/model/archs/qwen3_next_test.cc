// The facts of Qwen3-Next and Qwen3.5 that other families lack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::qwen3_next_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Next(const std::string& fields, int64_t layers = 4) {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"qwen3_next","vocab_size":11,"hidden_size":16,)"
                  R"("num_hidden_layers":{},"num_attention_heads":4,"intermediate_size":10,)"
                  R"("head_dim":8,"num_experts":4,"num_experts_per_tok":2{}{}}})",
                  layers, fields.empty() ? "" : ",", fields),
      "config.json"));
}

std::vector<int64_t> Recurrent(const DecoderSpec& spec) {
  return OfEachLayer(spec, [](const LayerKind& kind) { return int64_t{!HasAttention(kind)}; });
}

TEST(Qwen3NextTest, LayersWithAttentionStandAtIntervalsOrAreTyped) {
  EXPECT_THAT(Recurrent(Next("")), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(Recurrent(Next(R"("full_attention_interval":2)")), ElementsAre(1, 0, 1, 0));
  EXPECT_THAT(
      Recurrent(Next(R"("layer_types":["full_attention","linear_attention"])", /*layers=*/2)),
      ElementsAre(0, 1));
}

TEST(Qwen3NextTest, ASilentConfig) {
  const DecoderSpec spec = Next("");
  const ops::DeltaNetShape& shape = spec.delta.shape;
  EXPECT_THAT(
      (std::vector{shape.key_heads, shape.value_heads, shape.key_dim, shape.value_dim, shape.taps}),
      ElementsAre(16, 32, 128, 128, 4));
  EXPECT_EQ(spec.rotary.rotary_dim, 2) << "a quarter of a head";
  EXPECT_TRUE(spec.gated_attention && spec.shared_gated && spec.norm_gain_less_one);
  EXPECT_EQ(spec.shared_mlp.intermediate, 512);
  EXPECT_TRUE(spec.mlp.shares_among_chosen);
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
}

TEST(Qwen3NextTest, SomeLayersAreDense) {
  EXPECT_THAT(ExpertsOf(Next(R"("mlp_only_layers":[1,3])")), ElementsAre(4, 0, 4, 0));
  EXPECT_THAT(ExpertsOf(Next(R"("decoder_sparse_step":2)")), ElementsAre(0, 4, 0, 4));
}

TEST(Qwen3NextTest, RefusesWhatItCannotBe) {
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] { Next(R"("linear_num_value_heads":6,"linear_num_key_heads":4)"); }),
              HasSubstr("linear_num_value_heads: expected a multiple of 4 key heads"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Next(R"("hidden_act":"gelu")"); }),
              HasSubstr("hidden_act: expected silu"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Next(R"("attn_output_gate":false)"); }),
              HasSubstr("attn_output_gate: expected true"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Next(R"("linear_conv_kernel_dim":66)"); }),
              HasSubstr("linear_conv_kernel_dim"));
}

TEST(Qwen3NextTest, AStateHasTheSizeOfItsHeads) {
  const DecoderSpec spec =
      Next(R"("linear_num_key_heads":2,"linear_num_value_heads":6,"linear_key_head_dim":3,)"
           R"("linear_value_head_dim":5,"linear_conv_kernel_dim":4)");
  const int64_t convolved = 2 * 2 * 3 + 6 * 5;
  const StateLayout states = Geometry(spec).states;
  EXPECT_EQ(states.layers, 3);
  EXPECT_EQ(states.floats, 6 * 3 * 5 + 3 * convolved);
  EXPECT_EQ(states.row_floats, convolved + 2 * 3 + 6 * 5 + 6);
}

TEST(Qwen35Test, TheTextOfAModelThatSees) {
  const auto with = [](const std::string& of_text, const std::string& fields) {
    return DescribeModel(HfConfig::Parse(
        fmt::format(R"({{"model_type":"qwen3_5","text_config":{{"model_type":"qwen3_5_text",)"
                    R"("vocab_size":11,"hidden_size":16,"num_hidden_layers":2,)"
                    R"("num_attention_heads":4,"intermediate_size":10{}}}{}}})",
                    of_text, fields),
        "config.json"));
  };
  const DecoderSpec spec =
      with(R"(,"rope_parameters":{"rope_theta":100,"mrope_section":[11,11,10]})", "");
  EXPECT_EQ(spec.family, "qwen3_5");
  EXPECT_EQ(spec.rotary.theta, 100);
  EXPECT_EQ(spec.names.delta_z, "language_model.model.layers.{}.linear_attn.in_proj_z");
  EXPECT_EQ(spec.names.others[0], "mtp.");
  EXPECT_THAT(spec.warnings, ElementsAre(HasSubstr("a qwen3_5 model reads text only")));
  EXPECT_FALSE(spec.tied_head);
  EXPECT_TRUE(with("", R"(,"tie_word_embeddings":true)").tied_head);
}

}  // namespace
}  // namespace godwit::qwen3_next_test
