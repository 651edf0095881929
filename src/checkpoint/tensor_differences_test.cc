#include "checkpoint/tensor_differences.h"

#include <gtest/gtest.h>

#include <vector>

#include "model/archs/all.h"
#include "model/model_tensors.h"

namespace godwit::tensor_differences_test {
namespace {

DecoderSpec Spec(const std::string& type, const std::string& fields = "") {
  return DescribeModel(HfConfig::Parse(
      R"({"vocab_size":11,"hidden_size":16,"num_hidden_layers":2,"num_attention_heads":4,)"
      R"("intermediate_size":10,"model_type":")" +
          type + "\"" + fields + "}",
      "config.json"));
}

std::vector<std::string> NamesOf(const DecoderSpec& spec) {
  std::vector<std::string> names;
  for (const WantedTensor& tensor : WantedTensors(spec)) names.push_back(tensor.name);
  return names;
}

TEST(TensorDifferencesTest, TheSameNames) {
  const DecoderSpec spec = Spec("llama");
  std::vector<std::string> names = NamesOf(spec);
  names.emplace_back("model.layers.1.self_attn.rotary_emb.inv_freq");
  EXPECT_EQ(TensorDifferences(spec, names), "its tensor names are those of that family");
  // Dense layers and layers with experts.
  const DecoderSpec moe = Spec("qwen3_moe", R"(,"mlp_only_layers":[1],"num_experts":9)");
  EXPECT_EQ(TensorDifferences(moe, NamesOf(moe)), "its tensor names are those of that family");
}

TEST(TensorDifferencesTest, OneOfEachKindIsNamed) {
  EXPECT_EQ(TensorDifferences(Spec("llama"), NamesOf(Spec("qwen3"))),
            "its tensors differ: it has others: model.layers.*.self_attn.k_norm.weight and "
            "model.layers.*.self_attn.q_norm.weight");
  EXPECT_EQ(TensorDifferences(Spec("qwen3"), NamesOf(Spec("llama"))),
            "its tensors differ: it lacks model.layers.*.self_attn.k_norm.weight and "
            "model.layers.*.self_attn.q_norm.weight");
  const std::string far =
      TensorDifferences(Spec("llama"), NamesOf(Spec("internlm2", R"(,"bias":false)")));
  EXPECT_EQ(far,
            "its tensors differ: it lacks lm_head.weight, model.embed_tokens.weight, "
            "model.layers.*.input_layernorm.weight, model.layers.*.mlp.down_proj.weight and 7 more "
            "and has others: model.layers.*.attention.wo.weight, "
            "model.layers.*.attention.wqkv.weight, model.layers.*.attention_norm.weight, "
            "model.layers.*.feed_forward.w1.weight and 5 more");
}

TEST(TensorDifferencesTest, ASpecOfAnySizeIsLookedAtByOneLayer) {
  DecoderSpec spec = Spec("mixtral", R"(,"num_local_experts":512)");
  spec.layers = 4096;
  EXPECT_NE(TensorDifferences(spec, {}).find("lacks"), std::string::npos);
}

}  // namespace
}  // namespace godwit::tensor_differences_test
