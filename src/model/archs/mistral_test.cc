#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit {
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
  EXPECT_THAT(spec.windows, Each(0));
  EXPECT_THAT(spec.warnings, ElementsAre(HasSubstr("a mistral3 model reads texts here")));
  EXPECT_FALSE(spec.tied_head);
  EXPECT_TRUE(Mistral3(R"(,"tie_word_embeddings":true)").tied_head);
  EXPECT_TRUE(Mistral3("", R"(,"tie_word_embeddings":true)").tied_head);
  EXPECT_FALSE(
      Mistral3(R"(,"tie_word_embeddings":false)", R"(,"tie_word_embeddings":true)").tied_head);
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [] { Mistral3("", "", "ministral3"); }),
              HasSubstr("text_config.model_type: expected mistral, found \"ministral3\""));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { SmallSpec(R"("model_type":"mistral3")"); }),
              HasSubstr("text_config: expected an object"));
}

// What sees is left out under either spelling, and anything else is not.
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
}  // namespace godwit
