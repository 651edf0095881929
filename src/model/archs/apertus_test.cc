#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/model_test_support.h"

namespace godwit::apertus_test {
namespace {

DecoderSpec Apertus(const std::string& fields = "") { return SmallSpecOf("apertus", fields); }

TEST(ApertusTest, ASilentConfig) {
  const DecoderSpec spec = Apertus();
  EXPECT_TRUE(spec.mlp.xielu && !spec.mlp.gated);
  EXPECT_EQ(spec.qk_norm, QkNorm::kHeads);
  EXPECT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_EQ(spec.rotary.theta, 1.2e7);
  EXPECT_EQ(spec.rotary.scaling.kind, RotaryScaling::Kind::kLlama3);
  EXPECT_EQ(spec.rotary.scaling.factor, 8);
}

TEST(ApertusTest, ReadsWhatItsVariationsState) {
  EXPECT_EQ(Apertus(R"("rope_parameters":{"rope_theta":500})").rotary.theta, 500);
  EXPECT_EQ(Apertus(R"("rope_parameters":{"rope_theta":500})").rotary.scaling.kind,
            RotaryScaling::Kind::kNone);
  EXPECT_TRUE(Apertus(R"("attention_bias":true)").qkv_bias);
  EXPECT_EQ(ErrorOf([] { Apertus(R"("hidden_act":"silu")"); }).kind(), ErrorKind::kUnsupported);
}

TEST(ApertusTest, EveryLayerHasItsNumbers) {
  int found = 0;
  for (const WantedTensor& tensor : WantedTensors(Apertus())) {
    found += tensor.name.find("mlp.act_fn.") != tensor.name.npos;
  }
  EXPECT_EQ(found, 8);
}

}  // namespace
}  // namespace godwit::apertus_test
