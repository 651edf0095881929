#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::deepseek_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

DecoderSpec V2(const std::string& fields = "") { return SmallSpecOf("deepseek_v2", fields); }
DecoderSpec V3(const std::string& fields = "") { return SmallSpecOf("deepseek_v3", fields); }

std::vector<std::string> Names(const DecoderSpec& spec) {
  std::vector<std::string> names;
  for (const WantedTensor& tensor : WantedTensors(spec)) names.push_back(tensor.name);
  return names;
}

TEST(DeepseekTest, ASilentV2) {
  const DecoderSpec spec = V2();
  ASSERT_TRUE(spec.latent);
  EXPECT_EQ(spec.latent->query_rank, 1536);
  EXPECT_EQ(spec.latent->kv_rank, 512);
  EXPECT_EQ(spec.kv_heads, 1);
  EXPECT_EQ(spec.head_dim, 576);
  EXPECT_EQ(spec.rotary.rotary_dim, 64);
  EXPECT_FLOAT_EQ(Geometry(spec).shape.scale, 1 / std::sqrt(192.0f));
  EXPECT_EQ(spec.mlp.experts, 64);
  EXPECT_EQ(spec.mlp.intermediate, 1407);
  EXPECT_EQ(spec.shared_mlp.intermediate, 2 * 1407);
  EXPECT_FALSE(spec.mlp.shares_among_chosen || spec.mlp.choice_bias);
  EXPECT_EQ(spec.mlp.choice.score, ops::ExpertScore::kLogit);
  EXPECT_EQ(spec.mlp.choice.groups, 1);
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(64, 64));
}

TEST(DeepseekTest, ASilentV3) {
  const DecoderSpec spec = V3();
  EXPECT_EQ(spec.mlp.experts, 256);
  EXPECT_EQ(spec.mlp.experts_per_token, 8);
  EXPECT_TRUE(spec.mlp.shares_among_chosen && spec.mlp.choice_bias);
  EXPECT_EQ(spec.mlp.choice.score, ops::ExpertScore::kSigmoid);
  EXPECT_EQ(spec.mlp.choice.groups, 8);
  EXPECT_EQ(spec.mlp.choice.groups_chosen, 4);
  EXPECT_EQ(spec.mlp.choice.best_of_group, 2);
  EXPECT_EQ(spec.mlp.choice.share_scale, 2.5f);
  EXPECT_THAT(ExpertsOf(spec), ElementsAre(0, 0)) << "the first three are";
  EXPECT_TRUE(spec.interleaved_rotary);
  EXPECT_FALSE(V3(R"("rope_interleave":false)").interleaved_rotary);
}

TEST(DeepseekTest, YarnScalesTheScores) {
  const std::string yarn = R"("rope_scaling":{"type":"yarn","factor":40,"mscale":1,)"
                           R"("original_max_position_embeddings":16,"mscale_all_dim":1})";
  const DecoderSpec spec = V3(yarn);
  const double magnitude = 0.1 * std::log(40.0) + 1;
  EXPECT_FLOAT_EQ(Geometry(spec).shape.scale,
                  static_cast<float>(magnitude * magnitude / std::sqrt(192.0)));
  EXPECT_EQ(spec.rotary.scaling.attention_factor, 1);
  EXPECT_TRUE(spec.warnings.empty());
}

TEST(DeepseekTest, Tensors) {
  const std::string sizes = R"("n_routed_experts":4,"num_experts_per_tok":2,"n_group":2,)"
                            R"("topk_group":1,"first_k_dense_replace":1)";
  const DecoderSpec spec = V3(sizes);
  const auto names = Names(spec);
  EXPECT_THAT(names, Contains("model.layers.0.self_attn.q_a_layernorm.weight"));
  EXPECT_THAT(names, Contains("model.layers.1.mlp.gate.e_score_correction_bias"));
  EXPECT_THAT(names, Contains("model.layers.1.mlp.shared_experts.down_proj.weight"));
  EXPECT_THAT(names, Contains("model.layers.0.mlp.up_proj.weight"));
  EXPECT_THAT(names, Not(Contains("model.layers.0.mlp.gate.weight")));
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(names));
  const DecoderSpec lite = V2(R"("q_lora_rank":null)");
  EXPECT_THAT(Names(lite), Contains("model.layers.0.self_attn.q_proj.weight"));
  EXPECT_THAT(Names(lite), Not(Contains(HasSubstr("q_a_proj"))));

  // One tensor of all heads is split into rows for keys and rows for values. Tensors behind the
  // last layer are left alone.
  FakeWeights weights;
  for (const WantedTensor& tensor : WantedTensors(spec)) {
    weights.Add(tensor.name, DType::kF32, tensor.shape);
  }
  weights.Add("model.layers.2.eh_proj.weight", DType::kF32, {3, 4});
  const ModelTensors tensors = ResolveTensors(spec, weights);
  const LatentTensors& latent = tensors.layers[1].latent;
  const TensorInfo& whole = *weights.Find("model.layers.1.self_attn.kv_b_proj.weight");
  ASSERT_EQ(latent.keys.size(), 4u);
  EXPECT_THAT(latent.keys[1].parts[0]->shape, ElementsAre(128, 512));
  EXPECT_TRUE(latent.keys[1].transposed);
  EXPECT_EQ(latent.keys[1].parts[0]->bytes.data(), whole.bytes.data() + 256 * 512 * 4);
  EXPECT_EQ(latent.values[1].parts[0]->bytes.data(), whole.bytes.data() + 384 * 512 * 4);
  EXPECT_EQ(latent.values[1].parts[0]->bytes.size(), 128u * 512 * 4);
  weights.Add("model.layers.1.self_attn.kv_b_proj.weight", DType::kI8, {1024, 512});
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ResolveTensors(spec, weights); }),
              HasSubstr("kv_b_proj.weight has type I8, expected F32"));
}

DecoderSpec V32(const std::string& fields = "") { return SmallSpecOf("deepseek_v32", fields); }
DecoderSpec Glm(const std::string& fields = "") { return SmallSpecOf("glm_moe_dsa", fields); }

TEST(DeepseekTest, ASilentIndex) {
  const DecoderSpec v32 = V32(), glm = Glm();
  ASSERT_TRUE(v32.key_index && glm.key_index);
  EXPECT_EQ(v32.key_index->heads, 64);
  EXPECT_EQ(glm.key_index->heads, 32);
  EXPECT_FALSE(v32.key_index->interleaved_rotary);
  EXPECT_TRUE(glm.key_index->interleaved_rotary);
  EXPECT_TRUE(v32.interleaved_rotary && glm.interleaved_rotary) << "those of attention";
  EXPECT_EQ(v32.mlp.choice.groups, 8);
  EXPECT_EQ(glm.mlp.choice.groups, 1);
  EXPECT_EQ(glm.latent->query_rank, 2048);
  EXPECT_EQ(glm.latent->value_dim, 256);
  for (const DecoderSpec* spec : {&v32, &glm}) {
    const AttentionGeometry geometry = Geometry(*spec);
    EXPECT_EQ(geometry.key_index->best, 2048);
    EXPECT_EQ(geometry.key_index->head_dim, 128);
    EXPECT_FLOAT_EQ(geometry.key_index->scale, 1 / std::sqrt(128.0f));
    EXPECT_FLOAT_EQ(geometry.key_index->weight_scale,
                    1 / std::sqrt(static_cast<float>(spec->key_index->heads)));
    EXPECT_EQ(geometry.index_layers, 2);
  }
  EXPECT_TRUE(V32(R"("indexer_rope_interleave":true)").key_index->interleaved_rotary);
}

DecoderSpec FiveLayersOfGlm(const std::string& fields) {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type":"glm_moe_dsa","vocab_size":11,"hidden_size":16,"num_hidden_layers":5,)"
      R"("num_attention_heads":4,"intermediate_size":10,)" +
          fields + "}",
      "config.json"));
}

// [layers] 1: the layer sees what an earlier one chose.
std::vector<int64_t> Sharers(const std::string& fields) {
  return OfEachLayer(FiveLayersOfGlm(fields),
                     [](const LayerKind& kind) { return kind.shares_choice ? 1 : 0; });
}

TEST(DeepseekTest, LayersOfGlmShareAChoice) {
  EXPECT_THAT(Sharers(R"("index_topk_freq":1)"), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(Sharers(R"("index_topk_freq":3)"), ElementsAre(0, 0, 1, 1, 0));
  EXPECT_THAT(Sharers(R"("index_topk_freq":2,"index_skip_topk_offset":3)"),
              ElementsAre(0, 0, 0, 1, 0));
  EXPECT_THAT(Sharers(R"("index_topk_pattern":"FSSFS")"), ElementsAre(0, 1, 1, 0, 1));
  const std::string types = R"("indexer_types":["full","shared","full","full","shared"])";
  EXPECT_THAT(Sharers(types + R"(,"index_topk_pattern":"FFFFF")"), ElementsAre(0, 1, 0, 0, 1));
  const DecoderSpec spec = FiveLayersOfGlm(types);
  EXPECT_EQ(Geometry(spec).index_layers, 3);
  EXPECT_THAT(Names(spec), Contains("model.layers.0.self_attn.indexer.k_norm.bias"));
  EXPECT_THAT(Names(spec), Contains("model.layers.2.self_attn.indexer.weights_proj.weight"));
  EXPECT_THAT(Names(spec), Not(Contains(HasSubstr("layers.1.self_attn.indexer"))));
}

TEST(DeepseekTest, DenseLayersByType) {
  EXPECT_THAT(ExpertsOf(V32(R"("mlp_layer_types":["sparse","dense"])")), ElementsAre(256, 0));
  EXPECT_THAT(ExpertsOf(V3(R"("mlp_layer_types":["sparse","dense"])")), ElementsAre(0, 0));
}

TEST(DeepseekTest, RefusesIndexesThatCannotBe) {
  for (const char* fields :
       {R"("q_lora_rank":null)", R"("index_topk":0)", R"("index_topk":1e6)", R"("index_n_heads":0)",
        R"("index_head_dim":32)", R"("index_head_dim":4096)", R"("mlp_layer_types":["dense"])",
        R"("mlp_layer_types":["dense","thin"])"}) {
    EXPECT_EQ(ErrorOf([&] { V32(fields); }).kind(), ErrorKind::kFormat) << fields;
  }
  for (const char* fields : {R"("rope_interleave":false)", R"("indexer_types":["full","shared"])",
                             R"("index_topk_freq":4)", R"("index_topk_pattern":"FS")",
                             R"("layer_types":["indexed_attention","full_attention"])"}) {
    EXPECT_EQ(ErrorOf([&] { V32(fields); }).kind(), ErrorKind::kUnsupported) << fields;
  }
  for (const char* fields : {R"("indexer_types":["full"])", R"("indexer_types":["shared","full"])",
                             R"("index_topk_pattern":"SF")", R"("index_topk_pattern":"FX")",
                             R"("index_topk_pattern":"FFF")", R"("index_topk_freq":-1)"}) {
    EXPECT_EQ(ErrorOf([&] { Glm(fields); }).kind(), ErrorKind::kFormat) << fields;
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Glm(R"("indexer_types":["shared","full"])"); }),
              HasSubstr("indexer_types: expected 2 layers, of which the first has an index"));
}

TEST(DeepseekTest, RefusesUnsupportedRouting) {
  for (const char* fields : {R"("scoring_func":"sigmoid")", R"("topk_method":"noaux_tc")",
                             R"("norm_topk_prob":true)", R"("moe_layer_freq":2)"}) {
    EXPECT_EQ(ErrorOf([&] { V2(fields); }).kind(), ErrorKind::kUnsupported) << fields;
  }
  for (const char* fields : {R"("scoring_func":"softmax")", R"("topk_method":"greedy")"}) {
    EXPECT_EQ(ErrorOf([&] { V3(fields); }).kind(), ErrorKind::kUnsupported) << fields;
  }
  for (const char* fields :
       {R"("n_group":3)", R"("n_group":256)", R"("topk_group":9)", R"("n_group":65)",
        R"("kv_lora_rank":1024)", R"("qk_rope_head_dim":0)", R"("num_experts_per_tok":129)",
        R"("n_shared_experts":-1)", R"("q_lora_rank":0)", R"("v_head_dim":0)"}) {
    EXPECT_EQ(ErrorOf([&] { V3(fields); }).kind(), ErrorKind::kFormat) << fields;
  }
}

}  // namespace
}  // namespace godwit::deepseek_test
