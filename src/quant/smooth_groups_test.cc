// The groups that each family has. tests/quant shows on every family that they are exact.
#include "quant/smooth_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quant/quant_test_support.h"
#include "weights/hf_config.h"
#include "weights/open_weights.h"

namespace godwit::quant::smooth_groups_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Found {
  std::vector<std::string> groups, left_out;
};

Found Describe(const DecoderSpec& spec, const ModelTensors& tensors, SmoothKind kind) {
  Found found;
  const SmoothGroups groups = FindSmoothGroups(spec, tensors, kind);
  for (const SmoothGroup& group : groups.groups) found.groups.push_back(group.name);
  for (const LeftOut& part : groups.left_out) {
    found.left_out.push_back(part.name + ": " + part.reason);
  }
  return found;
}

// Groups of the first layer of a golden model.
Found OfGolden(const std::string& name, SmoothKind kind) {
  const std::filesystem::path folder =
      std::filesystem::path(GODWIT_SOURCE_DIR "/tests/golden") / name;
  const DecoderSpec spec = DescribeModel(HfConfig::Load(folder / "config.json"));
  const auto source = OpenWeights(folder);
  ModelTensors tensors = ResolveTensors(spec, *source);
  tensors.layers.resize(1);
  return Describe(spec, tensors, kind);
}

TEST(SmoothGroups, LlamaHasItsGroups) {
  const TestModel model;
  ModelTensors tensors = model.tensors;
  tensors.layers.resize(1);
  EXPECT_THAT(Describe(model.spec, tensors, SmoothKind::kNone).groups, IsEmpty());
  EXPECT_THAT(Describe(model.spec, tensors, SmoothKind::kNorm).groups,
              ElementsAre("model.layers.0.input_layernorm -> q_proj, k_proj, v_proj",
                          "model.layers.0.post_attention_layernorm -> gate_proj, up_proj"));
  EXPECT_THAT(Describe(model.spec, tensors, SmoothKind::kAll).groups,
              ElementsAre("model.layers.0.self_attn.v_proj -> o_proj",
                          "model.layers.0.mlp.up_proj -> down_proj",
                          "model.layers.0.input_layernorm -> q_proj, k_proj, v_proj",
                          "model.layers.0.post_attention_layernorm -> gate_proj, up_proj"));
}

TEST(SmoothGroups, ValuesAreSharedByTheHeadsThatReadThem) {
  const TestModel model;  // 4 heads of 4 on 2 KV heads
  const auto found = FindSmoothGroups(model.spec, model.tensors, SmoothKind::kAll);
  const SmoothGroup& values = found.groups[0];
  EXPECT_EQ(values.channels, 8);
  EXPECT_THAT(values.input_channels, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7));
  ASSERT_EQ(values.divided.size(), 2);
  EXPECT_EQ(values.divided[1].part.name, "model.layers.0.self_attn.v_proj.bias");
}

TEST(SmoothGroups, OneNormForAttentionAndMlpIsOneGroup) {
  EXPECT_THAT(OfGolden("falcon/multi_query", SmoothKind::kNorm).groups,
              ElementsAre("transformer.h.0.input_layernorm -> query_key_value, dense_h_to_4h"));
}

TEST(SmoothGroups, IndivisibleNormsAreLeftOut) {
  const auto reasons = [](const std::string& golden) {
    return OfGolden(golden, SmoothKind::kNorm).left_out;
  };
  EXPECT_THAT(OfGolden("gemma3_text/pattern", SmoothKind::kNorm).groups, IsEmpty());
  EXPECT_THAT(
      reasons("gemma3_text/pattern"),
      ElementsAre("model.layers.0.input_layernorm: its gain is stored minus 1, which cannot be "
                  "divided",
                  "model.layers.0.pre_feedforward_layernorm: its gain is stored minus 1, which "
                  "cannot be divided"));
  EXPECT_THAT(reasons("olmo2/mha"),
              ElementsAre("model.layers.0.self_attn.q_proj: it has no norm before it",
                          "model.layers.0.mlp.gate_proj: it has no norm before it"));
  EXPECT_THAT(reasons("gpt2/relu"),
              ElementsAre("gpt2: its matrices are stored as [inputs, outputs]"));
  EXPECT_THAT(OfGolden("olmo2/mha", SmoothKind::kAll).groups,
              ElementsAre("model.layers.0.self_attn.v_proj -> o_proj",
                          "model.layers.0.mlp.up_proj -> down_proj"));
}

TEST(SmoothGroups, ADenseLayerAmongExperts) {
  EXPECT_EQ(OfGolden("qwen3_moe/sparse_step", SmoothKind::kAll).groups,
            OfGolden("qwen3/tied", SmoothKind::kAll).groups);
}

TEST(SmoothGroups, ExpertsShareOneWithTheirRouter) {
  const Found found = OfGolden("mixtral/two_of_five", SmoothKind::kAll);
  EXPECT_EQ(found.groups.back(), "model.layers.0.post_attention_layernorm -> gate, w1, w3");
  EXPECT_EQ(found.groups[5], "model.layers.0.block_sparse_moe.experts.4.w3 -> w2");
}

TEST(SmoothGroups, ExpertsOfOneTensorAreNamedAsTheyAreWritten) {
  const Found found = OfGolden("gpt_oss/plain", SmoothKind::kAll);
  EXPECT_EQ(found.groups.back(),
            "model.layers.0.post_attention_layernorm -> router, gate_proj, up_proj");
  EXPECT_THAT(found.left_out, testing::Contains("model.layers.0.mlp.experts.0.up_proj: its "
                                                "activation is not linear"));
}

TEST(SmoothGroups, LatentAttentionHasItsGroups) {
  const auto first_two = [](const std::string& golden) {
    std::vector<std::string> groups = OfGolden(golden, SmoothKind::kNorm).groups;
    groups.resize(2);
    return groups;
  };
  EXPECT_THAT(first_two("deepseek_v2/groups"),
              ElementsAre("model.layers.0.self_attn.q_a_layernorm -> q_b_proj",
                          "model.layers.0.input_layernorm -> q_a_proj, kv_a_proj_with_mqa"));
  EXPECT_EQ(first_two("deepseek_v2/lite")[0],
            "model.layers.0.input_layernorm -> q_proj, kv_a_proj_with_mqa");
}

TEST(SmoothGroups, RecurrentLayersBesideLatentAttentionHaveTheirs) {
  const Found found = OfGolden("kimi_linear/published", SmoothKind::kAll);
  EXPECT_THAT(found.groups,
              ElementsAre("model.layers.0.mlp.up_proj -> down_proj",
                          "model.layers.0.input_layernorm -> q_proj, k_proj, v_proj, b_proj, "
                          "f_a_proj, g_a_proj",
                          "model.layers.0.post_attention_layernorm -> gate_proj, up_proj"));
  EXPECT_THAT(found.left_out,
              ElementsAre("model.layers.0.self_attn.o_proj: its input is no mean of values"));
}

TEST(SmoothGroups, NonlinearLayersAreLeftOut) {
  EXPECT_THAT(OfGolden("bloom/alibi", SmoothKind::kAll).left_out,
              ElementsAre("transformer.h.0.mlp.dense_h_to_4h: its activation is not linear"));
  EXPECT_THAT(OfGolden("mpt/storywriter", SmoothKind::kAll).left_out,
              testing::Contains("transformer.blocks.0.attn.Wqkv: values are clipped to a range, "
                                "which is not linear"));
  // A ReLU is not linear, but positive factors pass through it.
  EXPECT_THAT(OfGolden("opt/untied", SmoothKind::kAll).left_out, IsEmpty());
}

TEST(SmoothGroups, NormsOnTheResidualStreamAndNormsWithoutGainsAreLeftOut) {
  const Found post_norm = OfGolden("opt/post_norm", SmoothKind::kNorm);
  EXPECT_THAT(post_norm.groups, IsEmpty());
  EXPECT_THAT(
      post_norm.left_out[0],
      "model.decoder.layers.0.self_attn_layer_norm: the residual stream also passes through "
      "this norm");
  const Found without_gain = OfGolden("opt/norms_without_weights", SmoothKind::kNorm);
  EXPECT_THAT(without_gain.groups, IsEmpty());
  EXPECT_EQ(without_gain.left_out[0],
            "model.decoder.layers.0.self_attn.q_proj: the norm before it has no gain to divide");
}

}  // namespace
}  // namespace godwit::quant::smooth_groups_test
