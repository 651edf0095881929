// The facts of Kimi Linear that other families lack.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::kimi_linear_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Kimi(const std::string& fields, int64_t layers = 5) {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"kimi_linear","vocab_size":11,"hidden_size":16,)"
                  R"("num_hidden_layers":{},"num_attention_heads":4,"intermediate_size":10,)"
                  R"("num_experts":8{}{}}})",
                  layers, fields.empty() ? "" : ",", fields),
      "config.json"));
}

DecoderSpec WithHeads(const std::string& fields) {
  return Kimi(fmt::format(R"("linear_attn_config":{{{}}})", fields));
}

std::vector<int64_t> Recurrent(const DecoderSpec& spec) {
  return OfEachLayer(spec, [](const LayerKind& kind) { return int64_t{!HasAttention(kind)}; });
}

std::string Refusal(ErrorKind kind, const std::string& fields) {
  return ErrorOf(kind, [&] { Kimi(fields); });
}

TEST(KimiLinearTest, LayersAreListedOrTypedOrEveryFourthHasAttention) {
  EXPECT_THAT(Recurrent(Kimi("")), ElementsAre(1, 1, 1, 1, 0));
  EXPECT_THAT(Recurrent(WithHeads(R"("full_attn_layers":[2,5],"kda_layers":[1,3,4])")),
              ElementsAre(1, 0, 1, 1, 0));
  EXPECT_THAT(
      Recurrent(Kimi(R"("layer_types":["full_attention","linear_attention"])", /*layers=*/2)),
      ElementsAre(0, 1));
}

TEST(KimiLinearTest, ASilentConfig) {
  const DecoderSpec spec = Kimi("");
  const GatedDeltaNetSpec& delta = spec.delta;
  const ops::DeltaNetShape& shape = delta.shape;
  EXPECT_THAT(
      (std::vector{shape.key_heads, shape.value_heads, shape.key_dim, shape.value_dim, shape.taps}),
      ElementsAre(32, 32, 128, 128, 4));
  EXPECT_TRUE(shape.channel_decays && delta.sigmoid_gate && delta.inputs_apart);
  EXPECT_EQ(delta.narrow, 128);
  EXPECT_EQ(delta.update_scale, 1);
  EXPECT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_EQ(spec.rotary.rotary_dim, 0) << "no positions";
  EXPECT_EQ(spec.latent->query_rank, 0);
  EXPECT_EQ(spec.score_scale, 1 / std::sqrt(192.0f));
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(0, 8, 8, 8, 8));
  EXPECT_EQ(KindOf(spec, 0).mlp.intermediate, 10);
  EXPECT_EQ(spec.shared_mlp.intermediate, 1024);
  EXPECT_EQ(spec.mlp.experts_per_token, 8);
  EXPECT_EQ(spec.mlp.choice.share_scale, 2.446f);
  EXPECT_TRUE(spec.mlp.choice_bias && spec.mlp.shares_among_chosen);
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
}

TEST(KimiLinearTest, HeadsStandInAnObjectOrBesideOtherFields) {
  const std::string inside = R"("head_dim":6,"num_heads":3,"short_conv_kernel_size":2)";
  const std::string outside =
      R"("linear_head_dim":6,"linear_num_heads":3,"linear_conv_kernel_dim":2)";
  for (const DecoderSpec& spec : {WithHeads(inside), Kimi(outside)}) {
    const ops::DeltaNetShape& shape = spec.delta.shape;
    EXPECT_THAT((std::vector{shape.key_heads, shape.key_dim, shape.value_dim, shape.taps}),
                ElementsAre(3, 6, 6, 2));
    EXPECT_EQ(spec.delta.narrow, 6);
    const StateLayout states = Geometry(spec).states;
    EXPECT_EQ(states.layers, 4);
    EXPECT_EQ(states.floats, 3 * 6 * 6 + 1 * 3 * 18);
    EXPECT_EQ(states.row_floats, 3 * 18 + 18 + 18 + 18) << "a decay for each channel";
  }
}

TEST(KimiLinearTest, RefusesWhatItCannotBe) {
  constexpr ErrorKind kFormat = ErrorKind::kFormat, kUnsupported = ErrorKind::kUnsupported;
  EXPECT_THAT(Refusal(kUnsupported, R"("mla_use_nope":false)"),
              HasSubstr("mla_use_nope: expected true"));
  EXPECT_THAT(Refusal(kUnsupported, R"("hidden_act":"gelu")"),
              HasSubstr("hidden_act: expected silu"));
  EXPECT_THAT(Refusal(kUnsupported, R"("moe_layer_freq":2)"),
              HasSubstr("moe_layer_freq: expected 1"));
  EXPECT_THAT(Refusal(kUnsupported, R"("moe_router_activation_func":"softmax")"),
              HasSubstr("moe_router_activation_func"));
  EXPECT_THAT(Refusal(kUnsupported, R"("num_expert_group":2,"use_grouped_topk":false)"),
              HasSubstr("use_grouped_topk"));
  EXPECT_THAT(Refusal(kFormat, R"("num_expert_group":3)"),
              HasSubstr("num_expert_group: expected groups of 2 or more of 8 experts"));
  EXPECT_THAT(Refusal(kFormat, R"("linear_attn_config":{"short_conv_kernel_size":66})"),
              HasSubstr("linear_attn_config.short_conv_kernel_size"));
  for (const auto& [lists, found] :
       {std::pair{R"("full_attn_layers":[2,5],"kda_layers":[1,3])", "layer 4 is in neither"},
        {R"("full_attn_layers":[2,5],"kda_layers":[1,2,3,4])", "layer 2 is in both"}}) {
    EXPECT_THAT(Refusal(kFormat, fmt::format(R"("linear_attn_config":{{{}}})", lists)),
                HasSubstr(found));
  }
  EXPECT_THAT(Refusal(kFormat, R"("linear_attn_config":{"full_attn_layers":[6],"kda_layers":[1]})"),
              HasSubstr("full_attn_layers"));
}

TEST(KimiLinearTest, ExpertsMayBeChosenInGroups) {
  const DecoderSpec spec = Kimi(R"("num_expert_group":4,"topk_group":2,"num_experts_per_token":3)");
  EXPECT_EQ(spec.mlp.choice.groups, 4);
  EXPECT_EQ(spec.mlp.choice.groups_chosen, 2);
  EXPECT_EQ(spec.mlp.choice.best_of_group, 2);
  EXPECT_THAT(Refusal(ErrorKind::kFormat,
                      R"("num_expert_group":4,"topk_group":1,"num_experts_per_token":3)"),
              HasSubstr("num_experts_per_token"));
}

}  // namespace
}  // namespace godwit::kimi_linear_test
