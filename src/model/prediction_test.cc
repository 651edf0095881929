// Layers that predict tokens: what families say of them, and the tensors that are then wanted.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_tensors.h"
#include "model/model_test_support.h"

namespace godwit::prediction_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kExperts =
    R"("n_routed_experts":4,"num_experts_per_tok":2,"n_group":2,"topk_group":1,)"
    R"("first_k_dense_replace":1,"moe_intermediate_size":6)";

const std::string kLatent =
    R"(,"q_lora_rank":6,"kv_lora_rank":4,"qk_nope_head_dim":4,"qk_rope_head_dim":2,"v_head_dim":4)";

DecoderSpec DeepSeek(int layers) {
  return SmallSpecOf("deepseek_v3", kExperts + kLatent + R"(,"num_nextn_predict_layers":)" +
                                        std::to_string(layers));
}

DecoderSpec Requested(DecoderSpec spec) {
  RequestPrediction(spec);
  return spec;
}

std::vector<std::string> NamesOf(const DecoderSpec& spec) {
  std::vector<std::string> names;
  for (const WantedTensor& tensor : WantedTensors(spec)) names.push_back(tensor.name);
  return names;
}

std::string Refusal(const DecoderSpec& spec) {
  return ErrorOf(ErrorKind::kUnsupported, [&] { Requested(spec); });
}

TEST(PredictionTest, IsADeepSeekLayerBehindTheOthers) {
  for (const DecoderSpec& plain :
       {DeepSeek(1), DeepSeek(3),
        SmallSpecOf("glm4_moe", kExperts + R"(,"num_nextn_predict_layers":1,"head_dim":8)")}) {
    EXPECT_THAT(NamesOf(plain), Not(Contains(HasSubstr("model.layers.2."))));
    const DecoderSpec spec = Requested(plain);
    const auto names = NamesOf(spec);
    for (const char* name :
         {"enorm.weight", "hnorm.weight", "eh_proj.weight", "shared_head.norm.weight",
          "input_layernorm.weight", "mlp.gate.e_score_correction_bias",
          "mlp.experts.3.up_proj.weight", "mlp.shared_experts.down_proj.weight"}) {
      EXPECT_THAT(names, Contains(std::string("model.layers.2.") + name));
    }
    // The embedding and the head are the model's, and further layers are left alone.
    EXPECT_THAT(names, Not(Contains(HasSubstr("shared_head.head"))));
    EXPECT_THAT(names, Not(Contains(HasSubstr("model.layers.2.embed_tokens"))));
    EXPECT_THAT(names, Not(Contains(HasSubstr("model.layers.3."))));
    EXPECT_EQ(CountTensors(spec).tensors, CountTensors(plain).tensors);
  }
  EXPECT_THAT(Refusal(DeepSeek(0)), HasSubstr("expected num_nextn_predict_layers or"));
  EXPECT_THAT(Refusal(SmallLlama()), HasSubstr("this llama model has no layer that predicts"));
}

TEST(PredictionTest, HasQwensOwnNames) {
  for (const char* type : {"qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"}) {
    const DecoderSpec spec = Requested(SmallSpecOf(type));
    EXPECT_EQ(spec.prediction->kind.mixer, Mixer::kAttention);
    const auto names = NamesOf(spec);
    for (const char* name :
         {"mtp.fc.weight", "mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight",
          "mtp.norm.weight", "mtp.layers.0.self_attn.q_norm.weight",
          "mtp.layers.0.post_attention_layernorm.weight"}) {
      EXPECT_THAT(names, Contains(name)) << type;
    }
    EXPECT_THAT(names, Not(Contains(HasSubstr("mtp.layers.1."))));
    EXPECT_THAT(names, Not(Contains(HasSubstr("mtp.layers.0.linear_attn"))));
  }
  EXPECT_THAT(Refusal(SmallSpecOf("qwen3_5_text", R"("mtp_num_hidden_layers":0)")),
              HasSubstr("mtp_num_hidden_layers of 1"));
  EXPECT_THAT(Refusal(SmallSpecOf("qwen3_5_text", R"("mtp_use_dedicated_embeddings":true)")),
              HasSubstr("config.json has mtp_use_dedicated_embeddings true, expected false"));
}

TEST(PredictionTest, HasItsNamesBesideAVisionModel) {
  const DecoderSpec spec = Requested(DescribeModel(HfConfig::Parse(
      R"({"model_type":"qwen3_5","text_config":{"model_type":"qwen3_5_text","vocab_size":11,)"
      R"("hidden_size":16,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("intermediate_size":10,"mtp_num_hidden_layers":1}})",
      "config.json")));
  EXPECT_THAT(NamesOf(spec), Contains("mtp.layers.0.mlp.gate_proj.weight"));
}

// Policies do not count the layer. Its keys come last.
TEST(PredictionTest, StandsBehindTheLayersOfPolicies) {
  DecoderSpec spec = SmallSpecOf("qwen3_next", R"("full_attention_interval":2)");
  spec.prediction->kind.rotary.theta = 7;
  EXPECT_THAT(KeyPlaces(spec), ElementsAre(0, 0));
  EXPECT_EQ(Geometry(spec).predicting, 0);
  RequestPrediction(spec);
  EXPECT_THAT(KeyPlaces(spec), ElementsAre(0, 0, 1));
  const AttentionGeometry geometry = Geometry(spec);
  EXPECT_EQ(geometry.layers, 1);
  EXPECT_EQ(geometry.predicting, 1);
  EXPECT_EQ(geometry.windows.size(), 1u);
  ASSERT_EQ(geometry.rotaries.size(), 2u);
  EXPECT_EQ(geometry.rotaries[geometry.RotaryOf(1)].theta, 7);
  EXPECT_EQ(LayoutOf(geometry, DType::kF32).layers, 2);
  EXPECT_EQ(Geometry(FirstLayers(spec, 2)).predicting, 0);
}

TEST(PredictionTest, MissingTensorsAreListed) {
  const DecoderSpec plain = DeepSeek(1), spec = Requested(plain);
  FakeWeights weights;
  EXPECT_FALSE(HasPrediction(spec, weights));
  for (const WantedTensor& tensor : WantedTensors(spec)) {
    if (tensor.name.ends_with("hnorm.weight")) continue;
    weights.Add(tensor.name, DType::kF32, tensor.shape);
  }
  EXPECT_TRUE(HasPrediction(spec, weights));
  EXPECT_FALSE(ResolveTensors(plain, weights).prediction);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ResolveTensors(spec, weights); }),
              HasSubstr("missing tensor model.layers.2.hnorm.weight, expected [16]"));
  weights.Add("model.layers.2.hnorm.weight", DType::kF32, {16});
  EXPECT_TRUE(ResolveTensors(spec, weights).prediction);
}

}  // namespace
}  // namespace godwit::prediction_test
