#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/archs/families.h"
#include "model/model_test_support.h"

namespace godwit::gemma_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DecoderSpec Gemma(const std::string& fields = "", const std::string& type = "gemma") {
  return SmallSpec(
      fmt::format(R"("model_type":"{}"{}{})", type, fields.empty() ? "" : ",", fields));
}

DecoderSpec Gemma3(const std::string& fields = "") { return Gemma(fields, "gemma3_text"); }

TEST(GemmaTest, ASilentConfig) {
  const DecoderSpec spec = Gemma();
  EXPECT_TRUE(spec.norm_gain_less_one && spec.tied_head && spec.input_norms);
  EXPECT_FALSE(spec.output_norms || spec.qkv_bias || spec.score_scale);
  EXPECT_EQ(spec.head_dim, 256);
  EXPECT_EQ(spec.embedding_scale, 4);
  EXPECT_EQ(spec.mlp.activation, ops::Activation::kGeluTanh);
  EXPECT_EQ(Gemma(R"("hidden_act":"gelu")").mlp.activation, ops::Activation::kGeluTanh);
  EXPECT_EQ(spec.qk_norm, QkNorm::kNone);
}

TEST(GemmaTest, NormsMayHoldTheGainsThemselves) {
  EXPECT_FALSE(Gemma(R"("norm_gain_offset":0)").norm_gain_less_one);
  EXPECT_TRUE(Gemma3(R"("norm_gain_offset":1)").norm_gain_less_one);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { Gemma(R"("norm_gain_offset":2)"); }),
              HasSubstr("norm_gain_offset"));
}

TEST(GemmaTest, TheScaleOfEmbeddingsIsThatOfTheStoredType) {
  const auto scale = [](const std::string& fields) {
    return DescribeModel(
               HfConfig::Parse(R"({"model_type":"gemma","vocab_size":11,"hidden_size":3072,)"
                               R"("num_hidden_layers":1,"num_attention_heads":4,)"
                               R"("intermediate_size":10)" +
                                   fields + "}",
                               "config.json"))
        .embedding_scale;
  };
  EXPECT_FLOAT_EQ(scale(""), 55.425625842204074f);
  EXPECT_FLOAT_EQ(scale(R"(,"torch_dtype":"float16")"), 55.425625842204074f);
  EXPECT_EQ(scale(R"(,"torch_dtype":"bfloat16")"), 55.5f);
  EXPECT_EQ(scale(R"(,"dtype":"bfloat16")"), 55.5f);
}

TEST(Gemma2Test, WindowsAlternateAndScoresAndLogitsAreCapped) {
  const DecoderSpec spec = Gemma("", "gemma2");
  EXPECT_TRUE(spec.output_norms && spec.norm_gain_less_one);
  EXPECT_EQ(spec.qk_norm, QkNorm::kNone);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(4096, 0));
  EXPECT_EQ(Geometry(spec).shape.score_cap, 50);
  EXPECT_EQ(spec.logit_cap, 30.0f);
  const DecoderSpec none =
      Gemma(R"("attn_logit_softcapping":null,"final_logit_softcapping":null)", "gemma2");
  EXPECT_EQ(Geometry(none).shape.score_cap, 0);
  EXPECT_FALSE(none.logit_cap);
  EXPECT_THAT(
      ErrorOf(ErrorKind::kFormat, [] { Gemma(R"("attn_logit_softcapping":-1)", "gemma2"); }),
      HasSubstr("attn_logit_softcapping"));
}

TEST(Gemma3Test, ASilentConfig) {
  const DecoderSpec spec = Gemma3();
  EXPECT_TRUE(spec.output_norms && spec.input_norms && spec.norm_gain_less_one);
  EXPECT_FALSE(spec.score_cap || spec.logit_cap);
  EXPECT_EQ(spec.qk_norm, QkNorm::kHeads);
  EXPECT_EQ(Geometry(spec).shape.scale, 0.0625f);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(4096, 4096));
  EXPECT_EQ(spec.rotary.theta, 1e6);
  EXPECT_EQ(KindOf(spec, 0).rotary.theta, 1e4);
  EXPECT_THAT(RotaryDimsOf(spec), ElementsAre(256, 256));
}

TEST(Gemma3Test, LayersWithAWindowRotateByABaseOfTheirOwn) {
  const std::string fields = R"("sliding_window":9,"sliding_window_pattern":2,"rope_theta":500,)"
                             R"("rope_local_base_freq":70,"query_pre_attn_scalar":4,)"
                             R"("rope_scaling":{"rope_type":"linear","factor":8})";
  const DecoderSpec spec = Gemma3(fields);
  EXPECT_THAT(WindowsOf(spec), ElementsAre(9, 0));
  EXPECT_THAT(Geometry(spec).layer_rotary, ElementsAre(0, 1));
  const RotarySpec windowed = Geometry(spec).rotaries[0], full = Geometry(spec).rotaries[1];
  EXPECT_EQ(full.theta, 500);
  EXPECT_EQ(full.scaling.factor, 8);
  EXPECT_EQ(windowed.theta, 70);
  EXPECT_EQ(windowed.scaling.kind, RotaryScaling::Kind::kNone);
  EXPECT_EQ(spec.max_context, 64) << "max_position_embeddings counts the scaling";
  EXPECT_EQ(Geometry(spec).shape.scale, 0.5f);

  const DecoderSpec newer =
      Gemma3(R"("layer_types":["full_attention","sliding_attention"],"rope_parameters":{)"
             R"("full_attention":{"rope_type":"linear","factor":8,"rope_theta":500},)"
             R"("sliding_attention":{"rope_type":"default","rope_theta":70}})");
  EXPECT_THAT(WindowsOf(newer), ElementsAre(0, 4096));
  EXPECT_TRUE(KindOf(newer, 0).rotary == full);
  EXPECT_TRUE(KindOf(newer, 1).rotary == windowed);
  EXPECT_TRUE(newer.warnings.empty());
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [] {
                        Gemma3(R"("rope_parameters":{"sliding_attention":{"rope_type":"dynamic",)"
                               R"("factor":2}})");
                      }),
              HasSubstr("rope_parameters.sliding_attention.rope_type: expected frequencies that do "
                        "not depend on the context"));
}

TEST(Gemma3Test, TheTextOfAModelThatSees) {
  const std::string text =
      R"("text_config":{"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,)"
      R"("num_hidden_layers":2)";
  const auto describe = [&](const std::string& fields) {
    return DescribeModel(HfConfig::Parse(
        R"({"model_type":"gemma3","torch_dtype":"bfloat16",)" + text + fields + "}}",
        "config.json"));
  };
  const DecoderSpec spec = describe("");
  EXPECT_EQ(spec.family, "gemma3");
  EXPECT_EQ(spec.vocab_size, 262208);
  EXPECT_EQ(spec.heads, 8);
  EXPECT_EQ(spec.kv_heads, 4);
  EXPECT_EQ(spec.embedding_scale, 50.5f) << "of bf16";
  EXPECT_EQ(spec.names.q, "language_model.model.layers.{}.self_attn.q_proj");
  EXPECT_THAT(spec.warnings, ElementsAre(HasSubstr("vision_tower.*")));
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { describe(R"(,"use_bidirectional_attention":true)"); }),
      HasSubstr("text_config.use_bidirectional_attention"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [] { SmallSpec(R"("model_type":"gemma3")"); }),
              HasSubstr("text_config: expected an object"));
}

}  // namespace
}  // namespace godwit::gemma_test
