#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::mistral_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Mistral3(const std::string& of_text = "", const std::string& fields = "",
                     const std::string& type = "mistral") {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"mistral3","text_config":{{"model_type":"{}","vocab_size":11,)"
                  R"("hidden_size":16,"num_hidden_layers":2,"num_attention_heads":4,)"
                  R"("intermediate_size":10,"sliding_window":null{}}}{}}})",
                  type, of_text, fields),
      "config.json"));
}

TEST(Mistral3Test, TheTextOfAModelThatSees) {
  const DecoderSpec spec = Mistral3();
  EXPECT_EQ(spec.family, "mistral3");
  EXPECT_EQ(spec.names.q, "language_model.model.layers.{}.self_attn.q_proj");
  EXPECT_EQ(spec.names.head, "language_model.lm_head");
  EXPECT_THAT(WindowsOf(spec), Each(0));
  EXPECT_THAT(spec.warnings, ElementsAre(HasSubstr("a mistral3 model reads text only")));
  EXPECT_FALSE(spec.tied_head);
  EXPECT_TRUE(Mistral3(R"(,"tie_word_embeddings":true)").tied_head);
  EXPECT_TRUE(Mistral3("", R"(,"tie_word_embeddings":true)").tied_head);
  EXPECT_FALSE(
      Mistral3(R"(,"tie_word_embeddings":false)", R"(,"tie_word_embeddings":true)").tied_head);
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Mistral3("", "", "mistral5"); }),
              HasSubstr("text_config.model_type: expected mistral or ministral3 or mistral4, found "
                        "\"mistral5\""));
  EXPECT_TRUE(Mistral3("", "", "mistral4").latent);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { SmallSpec(R"("model_type":"mistral3")"); }),
              HasSubstr("text_config: expected an object"));
}

TEST(Ministral3Test, ASilentConfig) {
  const DecoderSpec spec = SmallSpecOf("ministral3");
  EXPECT_EQ(spec.rotary.theta, 1e6);
  EXPECT_EQ(spec.rotary.scaling.kind, RotaryScaling::Kind::kYarn);
  EXPECT_EQ(spec.rotary.scaling.factor, 16);
  EXPECT_EQ(spec.rotary.scaling.attention_factor, 1);
  EXPECT_EQ(spec.rotary.temperature.growth, 0.1);
  EXPECT_EQ(spec.rotary.temperature.tokens, 16384);
  EXPECT_EQ(spec.rotary.temperature.first, 0);
  EXPECT_EQ(spec.head_dim, 128);
  EXPECT_THAT(WindowsOf(spec), Each(0));
  EXPECT_THAT(spec.warnings, ElementsAre());
}

TEST(Ministral3Test, TheTemperatureIsPartOfTheRotation) {
  const std::string rope =
      R"("rope_parameters":{"rope_type":"yarn","type":"yarn","factor":2,"rope_theta":50,)"
      R"("original_max_position_embeddings":64,"max_position_embeddings":128,)"
      R"("llama_4_scaling_beta":0.3})";
  const DecoderSpec spec = SmallSpecOf("ministral3", rope + R"(,"sliding_window":9)");
  EXPECT_EQ(spec.rotary.theta, 50);
  EXPECT_EQ(spec.rotary.temperature.growth, 0.3);
  EXPECT_EQ(spec.rotary.temperature.tokens, 64);
  EXPECT_EQ(spec.max_context, 64);
  EXPECT_THAT(WindowsOf(spec), Each(9));
  EXPECT_THAT(spec.warnings, ElementsAre());
  EXPECT_EQ(Mistral3("," + rope, "", "ministral3").rotary.temperature.growth, 0.3);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] { SmallSpecOf("ministral3", R"("rope_parameters":{"rope_theta":50})"); }),
              HasSubstr("llama_4_scaling_beta"));
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { SmallSpecOf("mistral", rope); }),
              HasSubstr("mistral models have no scale of the attention scores by position"));
}

// The vision part is left out under either spelling, and nothing else is.
TEST(Mistral3Test, NamesBesideAndWithinTheWhole) {
  const DecoderSpec spec = Mistral3();
  for (const bool within : {false, true}) {
    FakeWeights weights;
    for (const WantedTensor& tensor : WantedTensors(spec)) {
      std::string name = tensor.name;
      if (within) {
        name = name.starts_with("language_model.model.") ? "model.language_model." + name.substr(21)
                                                         : name.substr(15);
      }
      weights.Add(name, DType::kF32, tensor.shape);
    }
    const std::string whole = within ? "model." : "";
    weights.Add(whole + "vision_tower.patch_conv.weight", DType::kF32, {2});
    weights.Add(whole + "multi_modal_projector.norm.weight", DType::kF32, {2});
    EXPECT_EQ(ResolveTensors(spec, weights).layers.size(), 2u);
    weights.Add(whole + "audio_tower.weight", DType::kF32, {2});
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { ResolveTensors(spec, weights); }),
                HasSubstr("unexpected tensor \"" + whole + "audio_tower.weight\""));
  }
}

}  // namespace
}  // namespace godwit::mistral_test
