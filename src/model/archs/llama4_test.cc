#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::llama4_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Text(const std::string& fields = "") { return SmallSpecOf("llama4_text", fields); }

TEST(Llama4Test, ASilentConfig) {
  const DecoderSpec spec = Text(R"("no_rope_layers":[1,0])");
  EXPECT_EQ(spec.rotary.theta, 5e5);
  EXPECT_TRUE(spec.interleaved_rotary);
  EXPECT_EQ(spec.qk_norm, QkNorm::kRotatedHeads);
  EXPECT_TRUE(spec.chunked);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(8192, 0));
  EXPECT_THAT(RotaryDimsOf(Text()), Each(128)) << "every fourth has none";
  EXPECT_EQ(spec.rotary.temperature.growth, 0);
  const RotarySpec& none = KindOf(spec, 1).rotary;
  EXPECT_EQ(none.rotary_dim, 0);
  EXPECT_EQ(none.temperature.growth, 0.1);
  EXPECT_EQ(none.temperature.tokens, 8192);
  EXPECT_EQ(none.temperature.first, 1);
  EXPECT_EQ(spec.mlp.experts, 16);
  EXPECT_EQ(spec.mlp.experts_per_token, 1);
  EXPECT_EQ(spec.shared_mlp.intermediate, 10);
  EXPECT_THAT(ExpertsOf(spec), Each(16));
  EXPECT_THAT(spec.warnings, ElementsAre());
}

TEST(Llama4Test, LayersWithoutPositionsSeeAllUnlessTold) {
  const std::string two = R"("attention_chunk_size":9,"no_rope_layer_interval":2)";
  EXPECT_THAT(WindowsOf(Text(two)), ElementsAre(9, 0));
  EXPECT_THAT(RotaryDimsOf(Text(two)), ElementsAre(128, 0));
  EXPECT_THAT(WindowsOf(Text(two + R"(,"no_rope_layers":[])")), ElementsAre(9, 0));
  EXPECT_THAT(WindowsOf(Text(two + R"(,"no_rope_layers":[0,1])")), ElementsAre(0, 9));
  const DecoderSpec told = Text(two + R"(,"layer_types":["full_attention","chunked_attention"])");
  EXPECT_THAT(WindowsOf(told), ElementsAre(0, 9));
  EXPECT_THAT(RotaryDimsOf(told), ElementsAre(128, 0));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Text(R"("attention_chunk_size":null)"); }),
              HasSubstr("attention_chunk_size: expected a number of tokens"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] { Text(R"("layer_types":["sliding_attention","full_attention"])"); }),
              HasSubstr("layer_types: expected full_attention or chunked_attention"));
}

// The first files write 4 for true.
TEST(Llama4Test, TheTemperatureCanBeSwitchedOff) {
  const auto growth = [](const std::string& on) {
    const std::string fields = R"("no_rope_layers":[0,1],"attn_scale":0.2,)";
    return KindOf(Text(fields + R"("attn_temperature_tuning":)" + on), 0).rotary.temperature.growth;
  };
  EXPECT_EQ(growth("true"), 0.2);
  EXPECT_EQ(growth("4"), 0.2);
  EXPECT_EQ(growth("null"), 0.2);
  EXPECT_EQ(growth("false"), 0);
  EXPECT_EQ(growth("0"), 0);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { growth("\"on\""); }),
              HasSubstr("attn_temperature_tuning: expected true or false"));
}

TEST(Llama4Test, SomeLayersAreDense) {
  EXPECT_THAT(ExpertsOf(Text(R"("interleave_moe_layer_step":2)")), ElementsAre(0, 16));
  EXPECT_THAT(ExpertsOf(Text(R"("moe_layers":[0],"interleave_moe_layer_step":2)")),
              ElementsAre(16, 0));
  EXPECT_THAT(ExpertsOf(Text(R"("moe_layers":[])")), Each(0));
  const DecoderSpec spec = Text(R"("interleave_moe_layer_step":2,"num_local_experts":3)");
  EXPECT_EQ(KindOf(spec, 0).mlp.intermediate, 16384);
  EXPECT_EQ(CountTensors(spec).tensors, std::ssize(WantedTensors(spec)));
}

TEST(Llama4Test, NormsOfHeadsHaveNoTensors) {
  EXPECT_EQ(Text(R"("use_qk_norm":false)").qk_norm, QkNorm::kNone);
  for (const WantedTensor& tensor : WantedTensors(Text())) {
    EXPECT_THAT(tensor.name, testing::Not(HasSubstr("_norm."))) << tensor.name;
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [] { Text(R"("rope_scaling":{"rope_type":"yarn","factor":4})"); }),
              HasSubstr("use_qk_norm"));
}

TEST(Llama4Test, TheTextOfAModelThatSees) {
  const DecoderSpec spec = DescribeModel(
      HfConfig::Parse(R"({"model_type":"llama4","text_config":{"model_type":"llama4_text",)"
                      R"("vocab_size":11,"hidden_size":16,"num_hidden_layers":2,)"
                      R"("num_attention_heads":4,"intermediate_size":10,"num_local_experts":3,)"
                      R"("interleave_moe_layer_step":2}})",
                      "config.json"));
  EXPECT_EQ(spec.family, "llama4");
  EXPECT_THAT(spec.warnings, ElementsAre(HasSubstr("vision_model.* and multi_modal_projector.*")));
  FakeWeights weights;
  for (const WantedTensor& tensor : WantedTensors(spec)) {
    EXPECT_TRUE(tensor.name.starts_with("language_model.")) << tensor.name;
    weights.Add(tensor.name, DType::kF32, tensor.shape);
  }
  weights.Add("vision_model.patch_embedding.linear.weight", DType::kF32, {2});
  weights.Add("multi_modal_projector.linear_1.weight", DType::kF32, {2});
  EXPECT_EQ(ResolveTensors(spec, weights).layers.size(), 2u);
  weights.Add("vision_tower.weight", DType::kF32, {2});
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ResolveTensors(spec, weights); }),
              HasSubstr("unexpected tensor \"vision_tower.weight\""));
}

}  // namespace
}  // namespace godwit::llama4_test
