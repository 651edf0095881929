#include "checkpoint/spec_difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/all.h"

namespace godwit::spec_difference_test {
namespace {

using testing::HasSubstr;
using testing::Optional;

DecoderSpec Spec(const std::string& more = "") {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type":"llama","vocab_size":32,"hidden_size":16,"num_hidden_layers":2,)"
      R"("num_attention_heads":2,"intermediate_size":24)" +
          more + "}",
      "config.json"));
}

TEST(SpecDifference, NoneOfAModelAndItself) {
  EXPECT_EQ(SpecDifference(Spec(), Spec()), std::nullopt);
  DecoderSpec other = Spec();
  other.family = "another";
  other.names.embedding = "elsewhere";
  other.rotary.theta *= 1 + 1e-8;
  EXPECT_EQ(SpecDifference(Spec(), other), std::nullopt);
}

TEST(SpecDifference, NamesTheFirst) {
  EXPECT_THAT(SpecDifference(Spec(R"(,"rope_theta":500000)"), Spec()),
              Optional(HasSubstr("rope theta: 500000 would be read back as 10000")));
  EXPECT_THAT(SpecDifference(Spec(R"(,"attention_bias":true)"), Spec()),
              Optional(HasSubstr("biases of q, k and v: yes")));
  EXPECT_THAT(SpecDifference(Spec(R"(,"tie_word_embeddings":true)"), Spec()),
              Optional(HasSubstr("an output head of its own: no")));
  DecoderSpec windowed = Spec();
  ChangeLayers(windowed, {false, true}, [](LayerKind& kind) { kind.window = 8; });
  EXPECT_THAT(SpecDifference(windowed, Spec()), Optional(HasSubstr("windows of layers")));
  DecoderSpec turned = Spec();
  ChangeLayers(turned, {false, true}, [](LayerKind& kind) { kind.rotary.theta = 70; });
  EXPECT_THAT(SpecDifference(turned, Spec()),
              Optional(HasSubstr("rope theta: 70 would be read back as 10000")));
  ChangeLayers(turned, {false, true}, [](LayerKind& kind) { kind.rotary.rotary_dim = 0; });
  EXPECT_THAT(SpecDifference(turned, Spec()), Optional(HasSubstr("layers with other rotations")));
  DecoderSpec capped = Spec();
  capped.logit_cap = 30;
  EXPECT_THAT(SpecDifference(capped, Spec()),
              Optional(HasSubstr("the cap of logits: 30 would be read back as none")));
}

}  // namespace
}  // namespace godwit::spec_difference_test
