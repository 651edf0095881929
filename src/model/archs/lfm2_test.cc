// The facts of LFM2 that other families lack.
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/test_support.h"
#include "model/archs/all.h"
#include "weights/hf_config.h"

namespace godwit::lfm2_test {
namespace {

DecoderSpec With(const std::string& type, const std::string& fields) {
  return DescribeModel(
      HfConfig::Parse(R"({"model_type": ")" + type +
                          R"(", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
              "num_key_value_heads": 2, "vocab_size": 320, "intermediate_size": 100)" +
                          (fields.empty() ? "" : ", ") + fields + "}",
                      "test"));
}

std::vector<int64_t> Mixers(const DecoderSpec& spec) {
  return OfEachLayer(spec, [](const LayerKind& kind) { return static_cast<int64_t>(kind.mixer); });
}

constexpr auto kAttention = static_cast<int64_t>(Mixer::kAttention);
constexpr auto kConvolution = static_cast<int64_t>(Mixer::kShortConvolution);

TEST(Lfm2, LayersWithAttentionAreListedOrTyped) {
  const std::vector<int64_t> expected = {kConvolution, kAttention, kConvolution, kAttention};
  EXPECT_EQ(Mixers(With("lfm2", R"("full_attn_idxs": [1, 3])")), expected);
  EXPECT_EQ(Mixers(With("lfm2", R"("full_attn_idxs": [0], "layer_types":
                                   ["conv", "full_attention", "conv", "full_attention"])")),
            expected);
  EXPECT_EQ(Mixers(With("lfm2", "")), std::vector<int64_t>(4, kAttention));
  EXPECT_EQ(ErrorOf([] { With("lfm2", R"("full_attn_idxs": [4])"); }).kind(), ErrorKind::kFormat);
  EXPECT_EQ(ErrorOf([] { With("lfm2", R"("layer_types": ["conv"])"); }).kind(), ErrorKind::kFormat);
  EXPECT_EQ(ErrorOf([] { With("lfm2", R"("conv_L_cache": 66)"); }).kind(), ErrorKind::kFormat);
}

TEST(Lfm2, TheWidthOfTheMlpIsRoundedUp) {
  const auto width = [](const std::string& fields) {
    return With("lfm2", fields).mlp.intermediate;
  };
  EXPECT_EQ(width(R"("block_multiple_of": 8)"), 72);                                   // of 66
  EXPECT_EQ(width(R"("block_multiple_of": 8, "block_ffn_dim_multiplier": 1.3)"), 88);  // of 85
  EXPECT_EQ(width(R"("block_ff_dim": 384)"), 256);
  EXPECT_EQ(width(R"("block_auto_adjust_ff_dim": false)"), 100);
}

TEST(Lfm2, ExpertsComeBehindDenseLayers) {
  const DecoderSpec spec =
      With("lfm2_moe", R"("num_dense_layers": 1, "full_attn_idxs": [2], "num_experts": 6,
                          "num_experts_per_tok": 2)");
  EXPECT_EQ(OfEachLayer(spec, [](const LayerKind& kind) { return kind.mlp.experts; }),
            (std::vector<int64_t>{0, 6, 6, 6}));
  EXPECT_EQ(Mixers(spec),
            (std::vector<int64_t>{kConvolution, kConvolution, kAttention, kConvolution}));
  EXPECT_EQ(KindOf(spec, 0).mlp.intermediate, 100);
  EXPECT_EQ(spec.mlp.choice.score, ops::ExpertScore::kSigmoid);
}

}  // namespace
}  // namespace godwit::lfm2_test
