#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/make_policy.h"
#include "model/archs/families.h"
#include "model/model_tensors.h"
#include "model/model_test_support.h"

namespace godwit::gemma4_test {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// SmallSpec has 2 layers of 4 heads.
DecoderSpec Gemma4(const std::string& fields = "") {
  return SmallSpec(R"("model_type":"gemma4_text")" + (fields.empty() ? "" : "," + fields));
}

DecoderSpec OfLayers(int layers, const std::string& types, const std::string& fields = "") {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"gemma4_text","vocab_size":11,"hidden_size":16,)"
                  R"("num_hidden_layers":{},"num_attention_heads":4,"intermediate_size":10,)"
                  R"("head_dim":16,"global_head_dim":32,"layer_types":[{}]{}{}}})",
                  layers, types, fields.empty() ? "" : ",", fields),
      "config.json"));
}

constexpr char kFull[] = R"("full_attention")", kSliding[] = R"("sliding_attention")";

std::string Types(const std::string& letters) {
  std::string types;
  for (const char letter : letters) {
    types += (types.empty() ? "" : ",") + std::string(letter == 'f' ? kFull : kSliding);
  }
  return types;
}

std::string Refusal(const std::string& fields, ErrorKind kind = ErrorKind::kUnsupported) {
  return ErrorOf(kind, [&] { Gemma4(fields); });
}

TEST(Gemma4Test, ASilentConfig) {
  const DecoderSpec spec = Gemma4();
  EXPECT_TRUE(spec.output_norms && spec.input_norms && spec.value_norm && spec.layer_scales);
  EXPECT_FALSE(spec.norm_gain_less_one || spec.qkv_bias || spec.logit_cap || spec.branch_norms);
  EXPECT_EQ(spec.qk_norm, QkNorm::kHeads);
  EXPECT_EQ(spec.score_scale, 1.0f);
  EXPECT_EQ(spec.embedding_scale, 4);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kGeluTanh);
  EXPECT_TRUE(spec.tied_head);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(512, 0)) << "the last layer never has a window";
  ASSERT_TRUE(spec.layer_embedding);
  EXPECT_EQ(spec.layer_embedding->width, 256);
  EXPECT_EQ(spec.layer_embedding->vocab_size, 262144);
  EXPECT_EQ(spec.layer_embedding->scale, 16);
  const LayerKind &windowed = KindOf(spec, 0), &full = KindOf(spec, 1);
  EXPECT_EQ(windowed.head_dim, 256);
  EXPECT_EQ(full.head_dim, 512);
  EXPECT_EQ(windowed.rotary.theta, 1e4);
  EXPECT_FALSE(windowed.rotary.turning_pairs);
  EXPECT_EQ(full.rotary.theta, 1e6);
  EXPECT_EQ(full.rotary.rotary_dim, 512);
  EXPECT_EQ(full.rotary.turning_pairs, 64);
  EXPECT_FALSE(windowed.keys_are_values || full.keys_are_values);
  EXPECT_FALSE(Gemma4(R"("hidden_size_per_layer_input":0)").layer_embedding);
  EXPECT_FALSE(Gemma4(R"("hidden_size_per_layer_input":null)").layer_embedding);
}

TEST(Gemma4Test, LayersWithoutAWindowHaveOtherHeads) {
  const DecoderSpec spec =
      OfLayers(3, Types("fsf"),
               R"("num_key_value_heads":2,"num_global_key_value_heads":1,"attention_k_eq_v":true)");
  EXPECT_EQ(OfEachLayer(spec, &LayerKind::head_dim), (std::vector<int64_t>{32, 16, 32}));
  EXPECT_EQ(OfEachLayer(spec, &LayerKind::kv_heads), (std::vector<int64_t>{1, 2, 1}));
  EXPECT_EQ(OfEachLayer(spec, &LayerKind::keys_are_values), (std::vector<int64_t>{1, 0, 1}));
  const AttentionGeometry geometry = Geometry(spec);
  EXPECT_EQ(geometry.ShapeOf(0).head_dim, 32);
  EXPECT_EQ(geometry.ShapeOf(1).head_dim, 16);
  EXPECT_EQ(geometry.ShapeOf(1).kv_heads, 2);
  EXPECT_EQ(geometry.ShapeOf(1).scale, 1);
  std::vector<std::string> names;
  for (const WantedTensor& tensor : WantedTensors(spec)) names.push_back(tensor.name);
  EXPECT_THAT(names, Contains("model.layers.1.self_attn.v_proj.weight"));
  EXPECT_THAT(names, testing::Not(Contains("model.layers.0.self_attn.v_proj.weight")));

  const DecoderSpec apart =
      OfLayers(2, Types("sf"), R"("num_key_value_heads":2,"num_global_key_value_heads":1)");
  EXPECT_EQ(KindOf(apart, 1).kv_heads, 2) << "fewer heads belong to values that are keys";
}

TEST(Gemma4Test, HeadsMayBeListedByLayer) {
  const std::string heads = R"({"head_dim":12,"num_key_value_heads":2})";
  const auto list = [&](const std::string& layers) {
    return OfLayers(3, Types("fsf"), fmt::format(R"("per_layer_config":{{{}}})", layers));
  };
  const DecoderSpec spec = list(fmt::format(R"("0":{},"2":{})", heads, heads));
  EXPECT_EQ(OfEachLayer(spec, &LayerKind::head_dim), (std::vector<int64_t>{12, 16, 12}));
  EXPECT_EQ(OfEachLayer(spec, &LayerKind::kv_heads), (std::vector<int64_t>{2, 4, 2}));
  const auto refusal = [&](const std::string& layers) {
    return ErrorOf(ErrorKind::kUnsupported, [&] { list(layers); });
  };
  EXPECT_THAT(refusal(R"("0":)" + heads),
              HasSubstr("per_layer_config: expected an entry for each layer without a window"));
  EXPECT_THAT(refusal(fmt::format(R"("0":{},"1":{})", heads, heads)),
              HasSubstr("per_layer_config: expected an entry for each layer without a window"));
  EXPECT_THAT(refusal(fmt::format(R"("0":{},"2":{{"head_dim":16}})", heads)),
              HasSubstr("per_layer_config.2: expected the same heads"));
  EXPECT_THAT(refusal(R"("0":{"head_dim":16,"sliding_window":4})"),
              HasSubstr("per_layer_config.0.sliding_window: expected sizes of heads alone"));
}

TEST(Gemma4Test, LastLayersReadKeysOfLayersBefore) {
  const DecoderSpec spec =
      OfLayers(6, Types("sfsfsf"), R"("num_kv_shared_layers":3,"use_double_wide_mlp":true)");
  EXPECT_EQ(OfEachLayer(spec, &LayerKind::keys_of), (std::vector<int64_t>{-1, -1, -1, 1, 2, 1}));
  EXPECT_EQ(KeyPlaces(spec), (std::vector<int64_t>{0, 1, 2, 1, 2, 1}));
  EXPECT_EQ(KeyLayers(spec), 3);
  EXPECT_EQ(AttentionLayers(spec), 6);
  EXPECT_EQ(OfEachLayer(spec, [](const LayerKind& kind) { return kind.mlp.intermediate; }),
            (std::vector<int64_t>{10, 10, 10, 20, 20, 20}));
  const AttentionGeometry geometry = Geometry(spec);
  EXPECT_EQ(geometry.layers, 3);
  EXPECT_THAT(geometry.readers, ElementsAre(0, 2, 1));
  // Two layers have half as many numbers of keys as the third.
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  EXPECT_EQ(layout.BytesFor(64), layout.page_bytes() * layout.pages());
  EXPECT_EQ(layout.pages(), 2) << "small layers share a page";
  // The tensors of such layers may stand in the file.
  EXPECT_THAT(spec.names.harmless, Contains(".layers.3.self_attn.k_proj.weight"));
  EXPECT_THAT(spec.names.harmless, testing::Not(Contains(".layers.2.self_attn.k_proj.weight")));

  EXPECT_THAT(
      ErrorOf(ErrorKind::kFormat, [] { OfLayers(3, Types("ssf"), R"("num_kv_shared_layers":1)"); }),
      HasSubstr("num_kv_shared_layers: expected a layer before layer 2 with the type"));
  EXPECT_THAT(Refusal(R"("num_kv_shared_layers":2)", ErrorKind::kFormat),
              HasSubstr("num_kv_shared_layers"));
}

TEST(Gemma4Test, ExpertsStandBesideTheMlp) {
  const DecoderSpec spec = Gemma4(
      R"("enable_moe_block":true,"num_experts":8,"top_k_experts":2,"moe_intermediate_size":6)");
  EXPECT_TRUE(spec.branch_norms);
  EXPECT_THAT(ExpertsOf(spec), Each(8));
  EXPECT_EQ(spec.mlp.experts_per_token, 2);
  EXPECT_EQ(spec.mlp.intermediate, 6);
  EXPECT_EQ(spec.shared_mlp.intermediate, 10);
  EXPECT_THAT(Refusal(R"("enable_moe_block":true)", ErrorKind::kFormat),
              HasSubstr("moe_intermediate_size"));
  EXPECT_THAT(ExpertsOf(Gemma4(R"("num_experts":8)")), Each(0)) << "without enable_moe_block";
}

TEST(Gemma4Test, WhatIsNotImplementedIsRefused) {
  EXPECT_THAT(Refusal(R"("use_bidirectional_attention":"all")"),
              HasSubstr("use_bidirectional_attention"));
  EXPECT_EQ(Gemma4(R"("use_bidirectional_attention":"vision")").layers, 2);
  EXPECT_THAT(Refusal(R"("vocab_size_per_layer_input":7)"),
              HasSubstr("vocab_size_per_layer_input: expected a row for each of 11 tokens"));
  const auto rotation = [](const std::string& full) {
    return fmt::format(R"("rope_parameters":{{"full_attention":{{{}}},)"
                       R"("sliding_attention":{{"rope_theta":100}}}})",
                       full);
  };
  EXPECT_THAT(Refusal(rotation(R"("rope_theta":9,"rope_type":"yarn")")),
              HasSubstr("rope_parameters.full_attention.rope_type"));
  EXPECT_THAT(
      Refusal(R"("rope_parameters":{"full_attention":{"rope_theta":9}})", ErrorKind::kFormat),
      HasSubstr("rope_parameters.sliding_attention: expected an object"));
  const DecoderSpec spec = Gemma4(rotation(
      R"("rope_theta":9,"rope_type":"proportional","partial_rotary_factor":0.7,"factor":4)"));
  EXPECT_EQ(KindOf(spec, 1).rotary.turning_pairs, 179) << "half of 512, times 0.7";
  EXPECT_EQ(KindOf(spec, 1).rotary.scaling.factor, 4);
  EXPECT_EQ(spec.max_context, 64);
  EXPECT_THAT(
      Refusal(R"("num_global_key_value_heads":3,"attention_k_eq_v":true)", ErrorKind::kFormat),
      HasSubstr("num_global_key_value_heads: expected a divisor of 4 heads"));
}

TEST(Gemma4Test, TheTextOfAModelThatSeesAndHears) {
  const DecoderSpec spec = DescribeModel(HfConfig::Parse(
      R"({"model_type":"gemma4","dtype":"bfloat16","audio_config":{},"text_config":{)"
      R"("model_type":"gemma4_text","hidden_size":2560,"intermediate_size":10240,)"
      R"("num_hidden_layers":2}})",
      "config.json"));
  EXPECT_EQ(spec.family, "gemma4");
  EXPECT_EQ(spec.vocab_size, 262144);
  EXPECT_EQ(spec.heads, 8);
  EXPECT_EQ(spec.embedding_scale, 50.5f) << "of bf16";
  EXPECT_EQ(spec.names.layer_scale, "language_model.model.layers.{}.layer_scalar");
  EXPECT_THAT(spec.names.others, Contains("model.audio_tower."));
}

TEST(Gemma4Test, PoliciesServeLayersThatDiffer) {
  const AttentionGeometry geometry =
      Geometry(OfLayers(4, Types("sfsf"), R"("num_kv_shared_layers":2)"));
  for (const char* spec : {"dense", "sinks:4+64", "window:64", "blocks"}) {
    EXPECT_NE(MakePolicy(geometry, {.spec = spec, .context = 128}), nullptr) << spec;
  }
  // Layers that choose have equal heads.
  const AttentionGeometry own = Geometry(OfLayers(4, Types("sfsf")));
  EXPECT_NE(MakePolicy(own, {.spec = "blocks", .context = 128}), nullptr);
}

}  // namespace
}  // namespace godwit::gemma4_test
