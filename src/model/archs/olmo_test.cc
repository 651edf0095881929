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

std::vector<int64_t> RecurrentLayers(const DecoderSpec& spec) {
  return OfEachLayer(spec, [](const LayerKind& kind) { return int64_t{!HasAttention(kind)}; });
}

TEST(OlmoHybridTest, NormsStandBeforeRecurrentBlocksAndBehindAttention) {
  const DecoderSpec spec = DescribeModel(HfConfig::Parse(
      R"({"model_type":"olmo_hybrid","vocab_size":11,"hidden_size":16,"num_hidden_layers":4,)"
      R"("num_attention_heads":4,"intermediate_size":10})",
      "config.json"));
  EXPECT_THAT(RecurrentLayers(spec), ElementsAre(1, 1, 1, 0));
  for (int64_t layer = 0; layer < 4; ++layer) {
    const LayerKind& kind = KindOf(spec, layer);
    EXPECT_EQ(kind.input_norms, !HasAttention(kind));
    EXPECT_EQ(kind.output_norms, HasAttention(kind));
  }
  EXPECT_EQ(spec.qk_norm, QkNorm::kAllHeads);
  EXPECT_EQ(spec.norm_epsilon, 1e-6f);
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
  EXPECT_THAT(RecurrentLayers(SmallSpecOf("olmo_hybrid")), ElementsAre(1, 0)) << "one of few";
  EXPECT_THAT(RecurrentLayers(SmallSpecOf(
                  "olmo_hybrid", R"("layer_types":["full_attention","linear_attention"])")),
              ElementsAre(0, 1));
}

TEST(OlmoHybridTest, AbsentSizesFollowFromAttention) {
  const DecoderSpec spec = SmallSpecOf("olmo_hybrid");
  const ops::DeltaNetShape& shape = spec.delta.shape;
  EXPECT_THAT(
      (std::vector{shape.key_heads, shape.value_heads, shape.key_dim, shape.value_dim, shape.taps}),
      ElementsAre(4, 4, 3, 6, 4));
  EXPECT_EQ(spec.delta.update_scale, 2);
  EXPECT_EQ(spec.delta.norm_epsilon, 1e-5f);
  EXPECT_FALSE(spec.delta.sigmoid_gate || shape.channel_decays);
  EXPECT_EQ(SmallSpecOf("olmo_hybrid", R"("linear_allow_neg_eigval":false)").delta.update_scale, 1);
}

TEST(OlmoHybridTest, RotatesUnlessTheBaseIsNull) {
  const auto rotary_dim = [](const std::string& fields) {
    return SmallSpecOf("olmo_hybrid", fields).rotary.rotary_dim;
  };
  EXPECT_EQ(rotary_dim(""), 4) << "as in transformers";
  EXPECT_EQ(rotary_dim(R"("rope_parameters":null)"), 4);
  EXPECT_EQ(rotary_dim(R"("rope_theta":null)"), 0);
  EXPECT_EQ(rotary_dim(R"("rope_parameters":{"rope_theta":null,"rope_type":"default"})"), 0);
  EXPECT_EQ(rotary_dim(R"("rope_parameters":{"rope_theta":500000,"rope_type":"default"})"), 4);
}

// Some published files have other names of norms.
TEST(OlmoHybridTest, NormsHaveEitherName) {
  const DecoderSpec spec = SmallSpecOf("olmo_hybrid");
  FakeWeights renamed;
  std::set<std::string> names;
  for (const WantedTensor& wanted : WantedTensors(spec)) {
    std::string name = wanted.name;
    for (const auto& [here, there] : spec.names.renamed_norms) {
      const size_t at = name.find(here);
      if (at != std::string::npos) name.replace(at, here.size(), there);
    }
    names.insert(name);
    renamed.Add(name, DType::kF32, wanted.shape);
  }
  EXPECT_TRUE(names.contains("model.layers.0.attention_layer_norm.weight"));
  EXPECT_TRUE(names.contains("model.layers.1.feedforward_layer_norm.weight"));
  const ModelTensors tensors = ResolveTensors(spec, renamed);
  EXPECT_EQ(tensors.layers[0].mlp_norm.weight->name,
            "model.layers.0.feedforward_layer_norm.weight");
  EXPECT_EQ(tensors.layers[1].mlp_out_norm.weight->name,
            "model.layers.1.post_feedforward_layernorm.weight");
}

TEST(OlmoHybridTest, RefusesWhatItCannotBe) {
  const auto refusal = [](ErrorKind kind, const std::string& fields) {
    return ErrorOf(kind, [&] { SmallSpecOf("olmo_hybrid", fields); });
  };
  EXPECT_THAT(refusal(ErrorKind::kFormat, R"("linear_num_value_heads":6)"),
              HasSubstr("linear_num_value_heads: expected a multiple of 4 key heads"));
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, R"("hidden_act":"gelu")"),
              HasSubstr("hidden_act: expected silu"));
  EXPECT_THAT(refusal(ErrorKind::kFormat, R"("linear_conv_kernel_dim":66)"),
              HasSubstr("linear_conv_kernel_dim"));
  EXPECT_THAT(refusal(ErrorKind::kFormat, R"("layer_types":["conv","full_attention"])"),
              HasSubstr("layer_types"));
  EXPECT_THAT(
      refusal(ErrorKind::kFormat, R"("linear_num_key_heads":32,"linear_num_value_heads":32)"),
      HasSubstr("linear_num_key_heads"));
}

}  // namespace
}  // namespace godwit::olmo_test
