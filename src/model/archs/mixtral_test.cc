#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::mixtral_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

DecoderSpec Mixtral(const std::string& fields = "") {
  return SmallSpec(R"("model_type":"mixtral")" + (fields.empty() ? "" : "," + fields));
}

std::string Refusal(const std::string& fields) {
  return ErrorOf(ErrorKind::kFormat, [&] { Mixtral(fields); });
}

TEST(MixtralTest, ASilentConfig) {
  const DecoderSpec spec = Mixtral();
  EXPECT_EQ(spec.mlp.experts, 8);
  EXPECT_EQ(spec.mlp.experts_per_token, 2);
  EXPECT_TRUE(spec.mlp.gated);
  EXPECT_EQ(spec.rotary.theta, 1e6);
  EXPECT_EQ(spec.norm_epsilon, 1e-5f);
  EXPECT_THAT(WindowsOf(spec), Each(0));
  EXPECT_FALSE(spec.qkv_bias || spec.attention_out_bias || spec.mlp.bias || spec.tied_head);
}

TEST(MixtralTest, ReadsItsExpertsAndItsWindow) {
  const DecoderSpec spec =
      Mixtral(R"("num_local_experts":3,"num_experts_per_tok":3,"sliding_window":9)");
  EXPECT_EQ(spec.mlp.experts, 3);
  EXPECT_EQ(spec.mlp.experts_per_token, 3);
  EXPECT_THAT(WindowsOf(spec), Each(9));
  EXPECT_THAT(WindowsOf(Mixtral(R"("sliding_window":null)")), Each(0));
  EXPECT_THAT(Refusal(R"("num_local_experts":2,"num_experts_per_tok":3)"),
              HasSubstr("num_experts_per_tok: expected a whole number from 1 to 2"));
  EXPECT_THAT(Refusal(R"("num_experts_per_tok":0)"), HasSubstr("num_experts_per_tok"));
  EXPECT_THAT(Refusal(R"("num_local_experts":1)"), HasSubstr("num_experts_per_tok"));
  EXPECT_EQ(Mixtral(R"("num_local_experts":1,"num_experts_per_tok":1)").mlp.experts_per_token, 1);
  EXPECT_THAT(Refusal(R"("num_local_experts":0)"), HasSubstr("num_local_experts"));
  EXPECT_THAT(Refusal(R"("num_local_experts":100000)"), HasSubstr("num_local_experts"));
}

TEST(MixtralTest, LoadsAndListsWhatItsExpertsLack) {
  const DecoderSpec spec = Mixtral(R"("num_local_experts":3)");
  FakeWeights source(spec, DType::kBF16);
  const auto decoder = Load(spec, source);
  EXPECT_GT(decoder->weight_bytes(), 0);
  for (const float logit : LogitsOf(*decoder, {1, 2, 3})) ASSERT_TRUE(std::isfinite(logit));

  const std::string moe = "model.layers.1.block_sparse_moe.";
  source.Remove(moe + "gate.weight");
  source.Remove(moe + "experts.2.w3.weight");
  source.Add(moe + "experts.0.w2.weight", DType::kBF16, {16, 11});
  source.Add(moe + "experts.1.w1.weight", DType::kF32, {10, 16});
  source.Add(moe + "experts.3.w1.weight", DType::kBF16, {10, 16});
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Load(spec, source); }),
              AllOf(HasSubstr("5 problems"),
                    HasSubstr("missing tensor " + moe + "gate.weight, expected [3, 16]"),
                    HasSubstr("missing tensor " + moe + "experts.2.w3.weight, expected [10, 16]"),
                    HasSubstr(moe + "experts.0.w2.weight has shape [16, 11], expected [16, 10]"),
                    HasSubstr(moe + "experts.1.w3.weight has type BF16, expected F32 like"),
                    HasSubstr("unexpected tensor \"" + moe + "experts.3.w1.weight\"")));
}

TEST(PhiMoeTest, ReadsItsMixingAndItsBiases) {
  const auto phi = [](const std::string& fields) {
    return SmallSpec(R"("model_type":"phimoe")" + fields);
  };
  const DecoderSpec silent = phi("");
  EXPECT_EQ(silent.mlp.experts, 16);
  EXPECT_EQ(silent.mlp.choice.near_scores, 0.02f);
  EXPECT_EQ(silent.norm, ops::NormKind::kLayer);
  EXPECT_TRUE(silent.norm_bias);
  EXPECT_FALSE(silent.head_bias || silent.qkv_bias || silent.attention_out_bias);
  const DecoderSpec spec =
      phi(R"(,"lm_head_bias":true,"attention_bias":true,"router_jitter_noise":0.1)");
  EXPECT_TRUE(spec.head_bias && spec.qkv_bias && spec.attention_out_bias);
  EXPECT_EQ(spec.mlp.choice.near_scores, 0.2f);
  const auto refusal = [&](ErrorKind kind, const std::string& fields) {
    return ErrorOf(kind, [&] { phi(fields); });
  };
  EXPECT_THAT(refusal(ErrorKind::kUnsupported, R"(,"num_experts_per_tok":3)"),
              HasSubstr("num_experts_per_tok: expected 2"));
  EXPECT_THAT(refusal(ErrorKind::kUnsupported,
                      R"(,"rope_scaling":{"type":"longrope","short_mscale":1.1,"long_mscale":1.2,
                          "original_max_position_embeddings":8})"),
              HasSubstr("long_mscale: expected the same as short_mscale"));
}

}  // namespace
}  // namespace godwit::mixtral_test
