#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::gemma3n_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// SmallSpec has 2 layers of 4 heads.
DecoderSpec Gemma3n(const std::string& fields = "") {
  return SmallSpec(R"("model_type":"gemma3n_text")" + (fields.empty() ? "" : "," + fields));
}

// A config of 2 layers with the widths of their MLPs.
DecoderSpec OfWidths(const std::string& widths, const std::string& cuts) {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"gemma3n_text","vocab_size":11,"hidden_size":16,)"
                  R"("num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":{},)"
                  R"("activation_sparsity_pattern":{}}})",
                  widths, cuts),
      "config.json"));
}

std::string Refusal(const std::string& fields, ErrorKind kind = ErrorKind::kFormat) {
  return ErrorOf(kind, [&] { Gemma3n(fields); });
}

TEST(Gemma3nTest, ASilentConfig) {
  const DecoderSpec spec = Gemma3n();
  EXPECT_TRUE(spec.output_norms && spec.input_norms && spec.value_norm && spec.tied_head);
  EXPECT_FALSE(spec.norm_gain_less_one || spec.qkv_bias || spec.layer_scales || spec.branch_norms);
  EXPECT_EQ(spec.qk_norm, QkNorm::kHeads);
  EXPECT_EQ(spec.score_scale, 1.0f);
  EXPECT_EQ(spec.logit_cap, 30.0f);
  EXPECT_EQ(spec.head_dim, 256);
  ASSERT_TRUE(spec.layer_embedding && spec.streams);
  EXPECT_EQ(spec.layer_embedding->width, 256);
  EXPECT_EQ(spec.streams->count, 4);
  EXPECT_EQ(spec.streams->active, 0);
  EXPECT_TRUE(spec.streams->scaled);
  EXPECT_EQ(spec.streams->narrow, 64);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(512, 512));
  EXPECT_EQ(KindOf(spec, 0).rotary.theta, 1e4);
  EXPECT_EQ(spec.rotary.theta, 1e6);
  EXPECT_FALSE(KindOf(spec, 0).mlp.cut_deviations);
  EXPECT_EQ(KeyLayers(spec), 2);
  EXPECT_FALSE(Gemma3n(R"("final_logit_softcapping":null)").logit_cap);
  EXPECT_FALSE(Gemma3n(R"("altup_correct_scale":false)").streams->scaled);
}

TEST(Gemma3nTest, LayersHaveWidthsAndCutsOfTheirOwn) {
  const DecoderSpec spec = OfWidths("[10,14]", "[0.95,0.5]");
  EXPECT_EQ(OfEachLayer(spec, [](const LayerKind& kind) { return kind.mlp.intermediate; }),
            (std::vector<int64_t>{10, 14}));
  EXPECT_NEAR(KindOf(spec, 0).mlp.cut_deviations.value_or(9), 1.6448536, 1e-6);
  EXPECT_NEAR(KindOf(spec, 1).mlp.cut_deviations.value_or(9), 0, 1e-6);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { OfWidths("[10]", "null"); }),
              HasSubstr("intermediate_size: expected one number, or one for each of 2 layers"));
  EXPECT_THAT(Refusal(R"("activation_sparsity_pattern":[0.5])"),
              HasSubstr("activation_sparsity_pattern: expected one number for each of 2 layers"));
  EXPECT_THAT(Refusal(R"("activation_sparsity_pattern":[0.5,1])"),
              HasSubstr("activation_sparsity_pattern"));
}

TEST(Gemma3nTest, SharedKeysAndRefusals) {
  const DecoderSpec spec =
      Gemma3n(R"("num_kv_shared_layers":1,"layer_types":["full_attention","full_attention"])");
  EXPECT_EQ(OfEachLayer(spec, &LayerKind::keys_of), (std::vector<int64_t>{-1, 0}));
  EXPECT_THAT(Refusal(R"("num_kv_shared_layers":2)"), HasSubstr("num_kv_shared_layers"));
  EXPECT_THAT(Refusal(R"("altup_active_idx":4)"), HasSubstr("altup_active_idx"));
  EXPECT_THAT(Refusal(R"("altup_num_inputs":1)"), HasSubstr("altup_num_inputs"));
  EXPECT_THAT(Refusal(R"("hidden_size_per_layer_input":0)", ErrorKind::kUnsupported),
              HasSubstr("hidden_size_per_layer_input: expected embeddings of each layer"));
}

TEST(Gemma3nTest, TheTextOfAModelThatSeesAndHears) {
  const DecoderSpec spec = DescribeModel(
      HfConfig::Parse(R"({"model_type":"gemma3n","torch_dtype":"bfloat16","text_config":{)"
                      R"("model_type":"gemma3n_text","hidden_size":2560,"intermediate_size":10240,)"
                      R"("num_hidden_layers":2}})",
                      "config.json"));
  EXPECT_EQ(spec.family, "gemma3n");
  EXPECT_EQ(spec.vocab_size, 262400);
  EXPECT_EQ(spec.kv_heads, 2);
  EXPECT_EQ(spec.embedding_scale, 50.5f) << "of bf16";
  EXPECT_EQ(spec.names.streams_in, "language_model.model.altup_projections.{}");
  EXPECT_THAT(spec.names.others, Contains("model.audio_tower."));
}

}  // namespace
}  // namespace godwit::gemma3n_test
