#include "model/hf_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/model_test_support.h"

namespace godwit::hf_fields_test {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = RotaryScaling::Kind;

std::string Refusal(const std::string& fields, ErrorKind kind = ErrorKind::kFormat) {
  const Error error = ErrorOf([&] { SmallSpec(fields); });
  EXPECT_EQ(error.kind(), kind) << fields;
  EXPECT_THAT(error.what(), HasSubstr("config.json: "));
  return error.what();
}

RotaryScaling Scaling(const std::string& fields) {
  return SmallSpec(R"("model_type":"llama",)" + fields).rotary.scaling;
}

TEST(ReadRotaryTest, OldAndNewSpellingsMeanTheSame) {
  for (const char* fields :
       {R"("rope_scaling":{"type":"linear","factor":2})",
        R"("rope_scaling":{"rope_type":"linear","factor":2.0})",
        R"("rope_scaling":{"type":"linear","rope_type":"linear","factor":2})",
        R"("rope_parameters":{"rope_type":"linear","factor":2,"rope_theta":500000})",
        R"("rope_scaling":null,"rope_parameters":{"rope_type":"linear","factor":2})"}) {
    const DecoderSpec spec = SmallSpec(std::string(R"("model_type":"llama",)") + fields);
    EXPECT_EQ(spec.rotary.scaling.kind, Kind::kLinear) << fields;
    EXPECT_EQ(spec.rotary.scaling.factor, 2) << fields;
    EXPECT_EQ(spec.max_context, 128) << fields;
    EXPECT_EQ(spec.rotary.theta,
              std::string(fields).find("theta") == std::string::npos ? 1e4 : 5e5);
    EXPECT_EQ(DefaultContext(spec), 128);
  }
  for (const char* fields : {R"("rope_scaling":null)", R"("rope_scaling":{"type":"default"})",
                             R"("rope_parameters":{"rope_type":"default","rope_theta":1000000})"}) {
    EXPECT_EQ(Scaling(fields).kind, Kind::kNone) << fields;
  }
  EXPECT_EQ(SmallSpec(R"("model_type":"llama","rope_theta":123)").rotary.theta, 123);
  EXPECT_EQ(SmallSpec(R"("model_type":"llama","rope_parameters":{"rope_theta":77})").rotary.theta,
            77);
}

TEST(ReadRotaryTest, EveryKindHasItsParameters) {
  const RotaryScaling llama3 =
      Scaling(R"("rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,)"
              R"("high_freq_factor":4,"original_max_position_embeddings":32})");
  EXPECT_EQ(llama3.kind, Kind::kLlama3);
  EXPECT_EQ(llama3.factor, 8);
  EXPECT_EQ(llama3.low_freq_factor, 1);
  EXPECT_EQ(llama3.high_freq_factor, 4);
  EXPECT_EQ(llama3.original_context, 32);

  const DecoderSpec dynamic =
      SmallSpec(R"("model_type":"llama","rope_scaling":{"type":"dynamic","factor":2.5})");
  EXPECT_EQ(dynamic.rotary.scaling.kind, Kind::kDynamic);
  EXPECT_EQ(dynamic.rotary.scaling.original_context, 64);
  EXPECT_EQ(dynamic.max_context, 160);
  EXPECT_EQ(DefaultContext(dynamic), 64) << "the longest that changes nothing in the model";

  const DecoderSpec yarn =
      SmallSpec(R"("model_type":"llama","rope_scaling":{"type":"yarn","factor":4,)"
                R"("original_max_position_embeddings":32})");
  EXPECT_EQ(yarn.rotary.scaling.kind, Kind::kYarn);
  EXPECT_EQ(yarn.max_context, 128);
  EXPECT_EQ(yarn.rotary.scaling.beta_fast, 32);
  EXPECT_EQ(yarn.rotary.scaling.beta_slow, 1);
  EXPECT_TRUE(yarn.rotary.scaling.truncate);
  EXPECT_NEAR(yarn.rotary.scaling.attention_factor, 0.1 * std::log(4) + 1, 1e-12);

  EXPECT_NEAR(Scaling(R"("rope_scaling":{"type":"yarn","factor":40,"mscale":0.7,)"
                      R"("mscale_all_dim":1.0,"beta_fast":16,"beta_slow":2,"truncate":false})")
                  .attention_factor,
              (0.07 * std::log(40) + 1) / (0.1 * std::log(40) + 1), 1e-12);
  const RotaryScaling tuned =
      Scaling(R"("rope_scaling":{"type":"yarn","factor":4,"beta_fast":16,"beta_slow":2,)"
              R"("truncate":false,"attention_factor":1.25})");
  EXPECT_EQ(tuned.attention_factor, 1.25);
  EXPECT_EQ(tuned.beta_fast, 16);
  EXPECT_EQ(tuned.beta_slow, 2);
  EXPECT_FALSE(tuned.truncate);
}

TEST(ReadRotaryTest, LongRopeHasAFactorForEveryPair) {
  const std::string start =
      R"("model_type":"llama","head_dim":4,"original_max_position_embeddings":16,)"
      R"("rope_scaling":{"type":"longrope",)";
  const std::string factors = R"("short_factor":[1,1.5],"long_factor":[2,9])";
  const DecoderSpec spec = SmallSpec(start + factors + "}");
  const RotaryScaling& scaling = spec.rotary.scaling;
  EXPECT_EQ(scaling.kind, Kind::kLongRope);
  EXPECT_EQ(scaling.original_context, 16);
  EXPECT_THAT(scaling.short_factors, ElementsAre(1, 1.5));
  EXPECT_THAT(scaling.long_factors, ElementsAre(2, 9));
  EXPECT_EQ(spec.max_context, 64) << "which counts the stretching";
  EXPECT_EQ(scaling.factor, 4) << "64 / 16";
  EXPECT_NEAR(scaling.attention_factor, std::sqrt(1 + std::log(4) / std::log(16)), 1e-12);
  EXPECT_EQ(DefaultContext(spec), 16) << "beyond, other factors count";
  EXPECT_EQ(Scaling(R"("head_dim":4,"rope_scaling":{"type":"su","attention_factor":1.25,)"
                    R"("original_max_position_embeddings":8,)" +
                    factors + "}")
                .attention_factor,
            1.25);

  EXPECT_THAT(Refusal(start + R"("short_factor":[1,1.5],"long_factor":[2]})"),
              HasSubstr("rope_scaling.long_factor: expected a list of numbers, one for each of 2 "
                        "rotary pairs, found a list of 1 value"));
  EXPECT_THAT(Refusal(start + R"("long_factor":[2,9]})"), HasSubstr("rope_scaling.short_factor"));
  EXPECT_THAT(Refusal(start + R"("short_factor":[1,0],"long_factor":[2,9]})"),
              HasSubstr("rope_scaling.short_factor[1]"));
  EXPECT_THAT(Refusal(R"("model_type":"llama","head_dim":4,"rope_scaling":{"type":"longrope",)" +
                      factors + "}"),
              HasSubstr("rope_scaling.original_max_position_embeddings"));
}

TEST(ReadRotaryTest, AKindThatIsUnknownIsUnsupportedAndToldTheKnownOnes) {
  const auto unsupported = [](const std::string& fields) {
    return Refusal(R"("model_type":"llama",)" + fields, ErrorKind::kUnsupported);
  };
  EXPECT_THAT(unsupported(R"("rope_scaling":{"type":"proportional","factor":4})"),
              HasSubstr("rope_scaling.type: expected default, linear, dynamic, llama3, yarn, "
                        "longrope or su, found \"proportional\""));
  EXPECT_THAT(unsupported(R"("rope_scaling":{"rope_type":"yran","factor":4})"),
              HasSubstr("or su (did you mean yarn?), found \"yran\""));
  // Other kinds may lack a factor. The message still names the kind.
  EXPECT_THAT(unsupported(R"("rope_scaling":{"type":"mrope","mrope_section":[1,1]})"),
              HasSubstr("rope_scaling.type: expected default, linear"));
  EXPECT_THAT(unsupported(R"("rope_parameters":{"rope_type":"x","factor":4})"),
              HasSubstr("rope_parameters.rope_type"));
}

TEST(ReadRotaryTest, RefusesParametersOutOfRange) {
  for (const char* factor : {"0", "0.5", "-2", "1e9", "\"8\"", "null"}) {
    EXPECT_THAT(
        Refusal(fmt::format(
            R"("model_type":"llama","rope_scaling":{{"type":"linear","factor":{}}})", factor)),
        HasSubstr("rope_scaling.factor"));
  }
  EXPECT_THAT(Refusal(R"("model_type":"llama","rope_scaling":{"type":"llama3","factor":8,)"
                      R"("low_freq_factor":5,"high_freq_factor":4})"),
              HasSubstr("rope_scaling.high_freq_factor: expected low_freq_factor or more"));
  EXPECT_THAT(Refusal(R"("model_type":"llama","rope_scaling":{"type":"llama3","factor":8})"),
              HasSubstr("rope_scaling.low_freq_factor"));
  EXPECT_THAT(Refusal(R"("model_type":"llama","rope_scaling":{"type":"yarn","factor":4,)"
                      R"("original_max_position_embeddings":0})"),
              HasSubstr("rope_scaling.original_max_position_embeddings"));
  EXPECT_THAT(Refusal(R"("model_type":"llama","rope_scaling":"linear")"),
              HasSubstr("rope_scaling: expected an object"));
  for (const char* theta : {"0", "-1", "1e300", "\"x\""}) {
    EXPECT_THAT(Refusal(fmt::format(R"("model_type":"llama","rope_theta":{})", theta)),
                HasSubstr("rope_theta"));
  }
}

TEST(ReadWindowsTest, MistralQwenAndLayerTypes) {
  const auto windows = [](const std::string& fields) { return WindowsOf(SmallSpec(fields)); };
  EXPECT_THAT(windows(R"("model_type":"mistral","sliding_window":9)"), ElementsAre(9, 9));
  EXPECT_THAT(windows(R"("model_type":"mistral","sliding_window":null)"), Each(0));
  EXPECT_THAT(windows(R"("model_type":"mistral")"), ElementsAre(4096, 4096));
  EXPECT_THAT(windows(R"("model_type":"llama","sliding_window":9)"), ElementsAre(0, 0));
  for (const char* family : {"qwen2", "qwen3"}) {
    const std::string type = fmt::format(R"("model_type":"{}","sliding_window":9)", family);
    EXPECT_THAT(windows(type), ElementsAre(0, 0));
    EXPECT_THAT(windows(fmt::format(R"("model_type":"{}","use_sliding_window":true,)"
                                    R"("max_window_layers":1)",
                                    family)),
                ElementsAre(0, 4096));
    EXPECT_THAT(windows(type + R"(,"use_sliding_window":false,"max_window_layers":0)"), Each(0));
    EXPECT_THAT(windows(type + R"(,"use_sliding_window":true,"max_window_layers":1)"),
                ElementsAre(0, 9));
    EXPECT_THAT(windows(type + R"(,"use_sliding_window":true)"), ElementsAre(0, 0));
    EXPECT_THAT(windows(type + R"(,"use_sliding_window":true,"max_window_layers":0,)"
                               R"("layer_types":["sliding_attention","full_attention"])"),
                ElementsAre(9, 0));
  }
  EXPECT_THAT(windows(R"("model_type":"mistral","sliding_window":0)"), Each(0)) << "none";
  EXPECT_THAT(windows(R"("model_type":"mixtral","sliding_window":0)"), Each(0));
  EXPECT_THAT(Refusal(R"("model_type":"mistral","sliding_window":-1)"),
              HasSubstr("sliding_window: expected a whole number from 0"));
  const std::string windowed = R"(,"layer_types":["full_attention","sliding_attention"])";
  for (const char* none : {"0", "null"}) {
    EXPECT_THAT(
        Refusal(fmt::format(R"("model_type":"mistral","sliding_window":{}{})", none, windowed)),
        HasSubstr("layer_types: expected full_attention for every layer, because there is no "
                  "sliding_window"));
  }
  EXPECT_THAT(Refusal(R"("model_type":"qwen2","sliding_window":9)" + windowed),
              HasSubstr("layer_types: expected full_attention for every layer, because "
                        "use_sliding_window is not true"));
  EXPECT_THAT(Refusal(R"("model_type":"mistral","sliding_window":9,)"
                      R"("layer_types":["full_attention"])"),
              HasSubstr("layer_types: expected one entry for each of 2 layers"));
  EXPECT_THAT(Refusal(R"("model_type":"mistral","sliding_window":9,)"
                      R"("layer_types":["full_attention","linear_attention"])"),
              HasSubstr("layer_types: expected full_attention or sliding_attention"));
}

// ChangeLayers has to come last in a family.
TEST(ReadWindowsTest, WindowsOfSomeLayersChangeNothingElse) {
  for (const char* family : {"cohere2", "gemma2", "gemma3_text", "gpt_oss", "ministral3", "mistral",
                             "mixtral", "olmo3", "phi3", "starcoder2"}) {
    SCOPED_TRACE(family);
    const DecoderSpec spec = SmallSpecOf(
        family, R"("sliding_window":9,"layer_types":["full_attention","sliding_attention"])");
    EXPECT_THAT(WindowsOf(spec), ElementsAre(0, 9));
    LayerKind full = KindOf(spec, 0), windowed = KindOf(spec, 1);
    const bool turn_alike = full.rotary == windowed.rotary;
    EXPECT_EQ(turn_alike,
              std::string_view("cohere2 gemma3_text").find(family) == std::string_view::npos);
    full.window = windowed.window;
    full.rotary = windowed.rotary;
    EXPECT_TRUE(full == windowed);
  }
}

TEST(ReadActivationTest, KnowsTheNamesOfTransformers) {
  const auto activation = [](const std::string& name) {
    return SmallSpec(fmt::format(R"("model_type":"llama","hidden_act":"{}")", name)).mlp.activation;
  };
  EXPECT_EQ(activation("silu"), ops::Activation::kSilu);
  EXPECT_EQ(activation("swish"), ops::Activation::kSilu);
  EXPECT_EQ(activation("gelu"), ops::Activation::kGeluErf);
  for (const char* name : {"gelu_new", "gelu_fast", "gelu_pytorch_tanh"}) {
    EXPECT_EQ(activation(name), ops::Activation::kGeluTanh);
  }
  EXPECT_EQ(activation("relu"), ops::Activation::kRelu);
  EXPECT_EQ(activation("relu2"), ops::Activation::kSquaredRelu);
  EXPECT_THAT(Refusal(R"("model_type":"llama","hidden_act":"mish")", ErrorKind::kUnsupported),
              HasSubstr("hidden_act: expected silu, swish, gelu, gelu_new, gelu_fast, "
                        "gelu_pytorch_tanh, relu or relu2, found \"mish\""));
  EXPECT_THAT(Refusal(R"("model_type":"llama","hidden_act":"gelu_neu")", ErrorKind::kUnsupported),
              HasSubstr("relu2 (did you mean gelu_new?), found"));
}

TEST(ReadCommonFieldsTest, KnowsTheSinksOfAPretrainingWithSinks) {
  const std::string llama = R"("model_type":"llama")";
  EXPECT_EQ(SmallSpec(llama).attention_sink, AttentionSink::kNone);
  EXPECT_EQ(SmallSpec(llama).sink_token, std::nullopt);
  EXPECT_EQ(SmallSpec(llama + R"(,"attention_sink":"softmax1")").attention_sink,
            AttentionSink::kSoftmax1);
  EXPECT_EQ(SmallSpec(llama + R"(,"sink_token_id":10)").sink_token, 10);
  EXPECT_THAT(Refusal(llama + R"(,"attention_sink":"x")"), HasSubstr("attention_sink"));
  EXPECT_THAT(Refusal(llama + R"(,"sink_token_id":11)"), HasSubstr("sink_token_id"));
}

}  // namespace
}  // namespace godwit::hf_fields_test
