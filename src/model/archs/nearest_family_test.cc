#include "model/archs/nearest_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "model/model_test_support.h"

namespace godwit::nearest_family_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

HfConfig Config(const std::string& fields) {
  return HfConfig::Parse(
      R"({"model_type":"new","vocab_size":11,"hidden_size":16,"num_hidden_layers":2,)"
      R"("num_attention_heads":4,"intermediate_size":10,"max_position_embeddings":64,)"
      R"("use_cache":true,"attention_dropout":0.0,"bos_token_id":1)" +
          fields + "}",
      "config.json");
}

std::string RefusalOf(const HfConfig& config) {
  return ErrorOf(ErrorKind::kUnsupported, [&] { DescribeModel(config); });
}

TEST(NearestFamilyTest, IsTheOneThatReadsMost) {
  EXPECT_EQ(FindNearestFamily(Config(R"(,"rms_norm_eps":1e-6,"hidden_act":"silu")")).model_type,
            "llama");
  EXPECT_EQ(FindNearestFamily(Config(R"(,"hidden_act":"silu","num_experts_per_tok":2,)"
                                     R"("moe_intermediate_size":6,"norm_topk_prob":true)"))
                .model_type,
            "qwen3_moe");
  const HfConfig gpt = HfConfig::Parse(
      R"({"model_type":"gptj","n_embd":16,"n_head":4,"n_layer":1,"n_positions":8,"vocab_size":9,)"
      R"("activation_function":"gelu_new","rotary_dim":4})",
      "config.json");
  EXPECT_EQ(FindNearestFamily(gpt).model_type, "gpt2");
  EXPECT_THAT(RefusalOf(gpt), HasSubstr("model_type \"gptj\" is not supported: the nearest family "
                                        "is gpt2, but this one has rotary_dim (rotation of a part "
                                        "of a head); supported are: llama, "));
}

TEST(NearestFamilyTest, MissingFeaturesAreNamed) {
  const HfConfig config =
      Config(R"(,"hidden_act":"silu","state_size":512,"output_multiplier_scale":0.5,)"
             R"("num_shared_experts":0,"alibi":false,)"
             R"("flux_capacitor":3,"null_field":null)");
  const NearestFamily nearest = FindNearestFamily(config);
  EXPECT_EQ(nearest.model_type, "llama");
  EXPECT_TRUE(nearest.spec);
  EXPECT_EQ(nearest.missing,
            "has state_size (state-space layers) and output_multiplier_scale (factor on the "
            "logits), and has the unknown keys flux_capacitor");
  EXPECT_THAT(RefusalOf(Config(R"(,"hidden_act":"silu")")),
              HasSubstr("llama, which knows all keys of its config.json"));
}

TEST(NearestFamilyTest, ReadingForAnotherFamilyLeavesNoTrace) {
  const HfConfig config = Config(R"(,"rms_norm_eps":1e-6)");
  FindNearestFamily(config);
  EXPECT_FALSE(config.WasRead("rms_norm_eps"));
}

// A family that ignores the activation does not fit a model with an unknown activation.
TEST(NearestFamilyTest, AFamilyThatRefusesTheConfigSaysWhy) {
  const HfConfig config = Config(R"(,"rms_norm_eps":1e-6,"hidden_act":"snake")");
  EXPECT_EQ(FindNearestFamily(config).model_type, "llama");
  EXPECT_THAT(RefusalOf(config), HasSubstr("the nearest family is llama, which refuses it: "
                                           "config.json: hidden_act: expected silu, "));
  EXPECT_THAT(RefusalOf(HfConfig::Parse(R"({"model_type":"new","width":3})", "config.json")),
              HasSubstr("which refuses it: config.json: vocab_size: expected "));
}

TEST(NearestFamilyTest, NamesOfAFileAreQuoted) {
  EXPECT_THAT(RefusalOf(Config(R"(,"hidden_act":"silu","a\u001b[31m":1)")),
              AllOf(HasSubstr(R"(has the unknown keys "a\x1b[31m")"), Not(HasSubstr("\x1b"))));
  std::string many = R"(,"hidden_act":"silu")";
  for (int i = 0; i < 100; ++i) many += fmt::format(R"(,"k{:03}":1)", i);
  EXPECT_THAT(RefusalOf(Config(many)), HasSubstr("k007 and 92 more"));
}

TEST(NearestFamilyTest, AModelAroundAnotherIsSaidToBeOne) {
  EXPECT_THAT(RefusalOf(Config(R"(,"text_config":{"model_type":"llama"})")),
              HasSubstr("is not supported: its text_config is a supported \"llama\", which is not "
                        "supported inside such a model"));
  EXPECT_THAT(RefusalOf(Config(R"(,"llm_config":{"model_type":"mamba"})")),
              HasSubstr("its llm_config is of model_type \"mamba\", which"));
}

std::filesystem::path RealConfigs() {
  return std::filesystem::path(GODWIT_SOURCE_DIR) / "../shared/data/configs";
}

TEST(NearestFamilyTest, RealModelsHaveTheExpectedFamily) {
  if (!std::filesystem::is_directory(RealConfigs())) {
    GTEST_SKIP() << "notice: no real configs in " << RealConfigs();
  }
  const auto nearest = [](const char* file) {
    return FindNearestFamily(HfConfig::Load(RealConfigs() / file));
  };
  EXPECT_EQ(nearest("one_layer_variants/baichuan.json").model_type, "llama");
  const NearestFamily gptj = nearest("one_layer_variants/gptj.json");
  EXPECT_EQ(gptj.model_type, "gpt2");
  EXPECT_THAT(gptj.missing, HasSubstr("rotary_dim (rotation of a part of a head)"));
}

}  // namespace
}  // namespace godwit::nearest_family_test
