// Int8 checkpoints: the loaded weights, and the refusals of the loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "model/model_test_support.h"

namespace godwit::int8_checkpoint_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
const std::vector<int32_t> kTokens = {3, 0, 10, 7, 7, 1};

DecoderSpec SpecWith(const std::string& weights, const std::string& input,
                     const std::string& ignore = R"("lm_head")", const std::string& fields = "") {
  return SmallSpec(fmt::format(
      R"("model_type":"llama","num_key_value_heads":2,"attention_bias":true,{}"quantization_config":)"
      R"({{"format":"int-quantized","ignore":[{}],"config_groups":{{"group_0":{{"targets":)"
      R"(["Linear"],"weights":{{{}}},"input_activations":{{{}}}}}}}}})",
      fields, ignore, weights, input));
}

constexpr const char* kChannel = R"("strategy":"channel")";
constexpr const char* kToken = R"("strategy":"token","dynamic":true)";
constexpr const char* kStatic = R"("strategy":"tensor")";
constexpr const char* kAsymmetric = R"("strategy":"tensor","symmetric":false)";

DecoderSpec PerToken() { return SpecWith(kChannel, kToken); }

std::vector<std::string> Modules(const DecoderSpec& spec) {
  std::vector<std::string> modules;
  for (int64_t i = 0; i < spec.layers; ++i) {
    for (const char* module :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      modules.push_back(fmt::format("model.layers.{}.{}", i, module));
    }
  }
  return modules;
}

// The weights of a spec. All quantized layers with input scales and zero points share the same
// ones.
class Int8Weights : public FakeWeights {
 public:
  explicit Int8Weights(const DecoderSpec& spec, float input_scale = 1, float zero_point = 0)
      : FakeWeights(spec) {
    const LayerQuantization quantization = spec.quantization.Distinct().at(0);
    for (const std::string& module : Modules(spec)) {
      Quantize(module);
      if (quantization.input.kind != InputScale::kStatic) continue;
      Add(module + ".input_scale", DType::kF32, {1});
      Set(module + ".input_scale", 0, input_scale);
      if (quantization.input.symmetric) continue;
      Add(module + ".input_zero_point", DType::kI8, {1});
      Set(module + ".input_zero_point", 0, zero_point);
    }
  }
};

std::string Refusal(const DecoderSpec& spec, const WeightSource& source) {
  return ErrorOf(ErrorKind::kFormat, [&] { Load(spec, source); });
}

// --weights int8 quantizes floats with the same scales.
TEST(Int8CheckpointTest, IsTheSameAsQuantizingWhileLoading) {
  const DecoderSpec spec = SpecWith(kChannel, kToken, /*ignore=*/"");
  Int8Weights source(spec);
  source.Quantize("lm_head");
  DecoderSpec floats = spec;
  floats.quantization = {};
  EXPECT_EQ(LogitsOf(*Load(spec, source), kTokens),
            LogitsOf(*Load(floats, FakeWeights(floats), {}, DType::kI8), kTokens));
}

TEST(Int8CheckpointTest, StaysAsItIsWhereInt8IsAsked) {
  const DecoderSpec spec = PerToken();
  const Int8Weights source(spec);
  const auto decoder = Load(spec, source), asked = Load(spec, source, {}, DType::kI8);
  EXPECT_EQ(asked->weight_types().layers, DType::kI8);
  EXPECT_EQ(asked->weight_types().head, DType::kF32);
  EXPECT_FALSE(asked->weight_types().mixed);
  EXPECT_EQ(LogitsOf(*asked, kTokens), LogitsOf(*decoder, kTokens));
  for (const std::optional<DType> storage : {std::optional<DType>(), std::optional(DType::kI8)}) {
    EXPECT_EQ(asked->weight_bytes(), LoadedBytes(ResolveTensors(spec, source), storage));
  }
}

TEST(Int8CheckpointTest, BecomesFloatsWhereAsked) {
  const DecoderSpec spec = PerToken();
  const Int8Weights source(spec);
  FakeWeights dequantized(spec);
  for (const std::string& module : Modules(spec)) {
    const TensorInfo& weight = *source.Find(module + ".weight");
    for (int64_t i = 0; i < weight.NumElements(); ++i) {
      float scale;
      const int64_t row = i / weight.shape[1];
      std::memcpy(&scale, source.Find(module + ".weight_scale")->bytes.data() + 4 * row, 4);
      const auto integer = static_cast<int8_t>(weight.bytes[i]);
      dequantized.Set(module + ".weight", i, scale * static_cast<float>(integer));
    }
  }
  DecoderSpec floats = spec;
  floats.quantization = {};
  for (const DType storage : {DType::kF32, DType::kBF16}) {
    const auto decoder = Load(spec, source, {}, storage);
    EXPECT_EQ(decoder->weight_bytes(), LoadedBytes(ResolveTensors(spec, source), storage));
    EXPECT_EQ(decoder->step_bytes(), StepBytes(spec, ResolveTensors(spec, source), storage));
    EXPECT_EQ(LogitsOf(*decoder, kTokens),
              LogitsOf(*Load(floats, dequantized, {}, storage), kTokens));
  }
}

TEST(Int8CheckpointTest, ScalesComeInManyForms) {
  const DecoderSpec spec = PerToken();
  const Int8Weights source(spec);
  const auto reference = LogitsOf(*Load(spec, source), kTokens);
  Int8Weights other(spec);
  const std::string name = "model.layers.0.mlp.up_proj.weight_scale";
  const std::vector<std::byte> scales = other.Bytes(name);
  other.Remove(name);
  other.Add(name, DType::kF32, {10});
  std::ranges::copy(scales, other.Bytes(name).begin());
  EXPECT_EQ(LogitsOf(*Load(spec, other), kTokens), reference);

  // A tensor's scale stands for each of its outputs, also beside another in a fused weight.
  const DecoderSpec per_tensor = SpecWith(R"("strategy":"tensor")", kToken);
  Int8Weights one(spec), each(spec);
  for (const std::string& module : Modules(spec)) {
    const std::string name = module + ".weight_scale";
    const float scale = module.ends_with("q_proj") ? 0.01f : 0.005f;
    for (int64_t i = 0; i < each.Find(name)->shape[0]; ++i) each.Set(name, i, scale);
    one.Remove(name);
    const bool scalar = module.ends_with("k_proj");
    one.Add(name, DType::kF32, scalar ? std::vector<int64_t>{} : std::vector<int64_t>{1});
    one.Set(name, 0, scale);
  }
  EXPECT_EQ(LogitsOf(*Load(per_tensor, one), kTokens), LogitsOf(*Load(spec, each), kTokens));
}

// -128 is a weight like others. A fixed scale and zero point give the results of the formula.
TEST(Int8CheckpointTest, AZeroPointShiftsTheInput) {
  const DecoderSpec symmetric = SpecWith(kChannel, kStatic);
  const DecoderSpec asymmetric = SpecWith(kChannel, kAsymmetric);
  const auto want = LogitsOf(*Load(symmetric, Int8Weights(symmetric, 0.03f, 0)), kTokens);
  const auto logits = [&](float zero_point) {
    return LogitsOf(*Load(asymmetric, Int8Weights(asymmetric, 0.03f, zero_point)), kTokens);
  };
  EXPECT_EQ(logits(0), want);
  // No input is clipped, so another zero point writes the same numbers in another way.
  const auto shifted = logits(-3);
  ASSERT_EQ(shifted.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(shifted[i], want[i], 1e-4);
  EXPECT_NE(logits(-120), want) << "negative inputs are cut";
}

// A storage of cached keys and values that config.json recommends is told, and changes nothing.
TEST(Int8CheckpointTest, ScalesOfTheCacheAreNotRead) {
  const DecoderSpec spec =
      SmallSpec(R"("model_type":"llama","num_key_value_heads":2,"attention_bias":true,)"
                R"("quantization_config":{"format":"int-quantized","ignore":["lm_head"],)"
                R"("kv_cache_scheme":{"num_bits":8,"type":"float"},"config_groups":{"group_0":{)"
                R"("targets":["Linear"],"weights":{"strategy":"channel"},)"
                R"("input_activations":{"strategy":"token","dynamic":true}}}})");
  EXPECT_THAT(spec.warnings, ElementsAre(HasSubstr("recommends 8-bit floats for cached keys")));
  EXPECT_THAT(PerToken().warnings, IsEmpty());
  Int8Weights source(spec);
  const auto expected = LogitsOf(*Load(PerToken(), source), kTokens);
  for (const char* name : {"k_scale", "v_scale"}) {
    source.Add(fmt::format("model.layers.0.self_attn.{}", name), DType::kF32, {1});
  }
  EXPECT_EQ(LogitsOf(*Load(spec, source), kTokens), expected);
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Load(PerToken(), source); }),
              HasSubstr("unexpected tensor \"model.layers.0.self_attn.k_scale\""));
}

TEST(Int8CheckpointTest, FusedLayersShareTheLargestInputScale) {
  const DecoderSpec spec = SpecWith(kChannel, kStatic);
  Int8Weights source(spec, 0.02f);
  source.Set("model.layers.1.self_attn.k_proj.input_scale", 0, 0.05f);
  std::vector<std::string> warnings;
  const LoadHooks hooks{.warn = [&](const std::string& text) { warnings.push_back(text); }};
  const auto logits = LogitsOf(*Load(spec, source, hooks), kTokens);
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("model.layers.1.self_attn.q_proj.input_scale"),
                                          HasSubstr("with the scale 0.05,"))));
  for (const char* module : {"q_proj", "v_proj"}) {
    source.Set(fmt::format("model.layers.1.self_attn.{}.input_scale", module), 0, 0.05f);
  }
  warnings.clear();
  EXPECT_EQ(LogitsOf(*Load(spec, source, hooks), kTokens), logits);
  EXPECT_THAT(warnings, IsEmpty());
}

// The range from -128 * 0.02 of one part to 255 * 0.02 of the other is 7.66; the scale is 7.66 /
// 255.
TEST(Int8CheckpointTest, FusedLayersShareTheRangeOfAllZeroPoints) {
  const DecoderSpec spec = SpecWith(kChannel, kAsymmetric);
  Int8Weights source(spec, 0.02f);
  source.Set("model.layers.0.mlp.up_proj.input_zero_point", 0, -128);
  std::vector<std::string> warnings;
  Load(spec, source, {.warn = [&](const std::string& text) { warnings.push_back(text); }});
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("model.layers.0.mlp.gate_proj.input_scale"),
                                          HasSubstr("with the scale 0.03003"))));
}

TEST(Int8CheckpointTest, TheConfigSaysWhatIsQuantized) {
  const DecoderSpec spec = SpecWith(kChannel, kAsymmetric);
  Int8Weights source(spec, 0.02f, 5);
  source.Remove("model.layers.0.mlp.down_proj.input_scale");
  source.Remove("model.layers.1.mlp.down_proj.input_zero_point");
  source.Remove("model.layers.1.self_attn.o_proj.weight_scale");
  source.Add("model.layers.0.self_attn.o_proj.weight_scale", DType::kF32, {3, 1});
  source.Add("model.layers.0.self_attn.o_proj.weight_zero_point", DType::kI8, {16, 1});
  source.Add("model.layers.0.mlp.up_proj.weight", DType::kBF16, {10, 16});
  source.Add("lm_head.weight", DType::kI8, {11, 16});
  source.Add("lm_head.weight_scale", DType::kF32, {11, 1});
  EXPECT_THAT(
      Refusal(spec, source),
      AllOf(HasSubstr("missing tensor model.layers.0.mlp.down_proj.input_scale, expected [1], for "
                      "a static input"),
            HasSubstr("missing tensor model.layers.1.mlp.down_proj.input_zero_point, expected [1]"),
            HasSubstr("missing tensor model.layers.1.self_attn.o_proj.weight_scale, expected [16, "
                      "1], for an int8 weight"),
            HasSubstr("model.layers.0.self_attn.o_proj.weight_scale has shape [3, 1], expected "
                      "[16, 1]"),
            HasSubstr("unexpected tensor \"model.layers.0.self_attn.o_proj.weight_zero_point\""),
            HasSubstr("tensor model.layers.0.mlp.up_proj.weight has type BF16, expected I8, "
                      "because config.json quantizes it"),
            HasSubstr("tensor lm_head.weight has type I8, expected F32, F16 or BF16, "
                      "because config.json does not quantize it"),
            HasSubstr("unexpected tensor \"lm_head.weight_scale\"")));
}

TEST(Int8CheckpointTest, FusedLayersAreQuantizedAlike) {
  const DecoderSpec spec =
      SpecWith(kChannel, kToken, R"("lm_head","model.layers.1.self_attn.k_proj")");
  Int8Weights source(PerToken());
  source.Remove("model.layers.1.self_attn.k_proj.weight_scale");
  source.Add("model.layers.1.self_attn.k_proj.weight", DType::kF32, {8, 16});
  EXPECT_THAT(Refusal(spec, source),
              HasSubstr("config.json quantizes model.layers.1.self_attn.k_proj differently from "
                        "model.layers.1.self_attn.q_proj, with which it is fused"));
}

TEST(Int8CheckpointTest, RefusesScalesThatAreNone) {
  const DecoderSpec spec = SpecWith(kChannel, kStatic);
  for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    Int8Weights source(spec, 0.02f);
    source.Set("model.layers.1.mlp.gate_proj.weight_scale", 3, bad);
    EXPECT_THAT(Refusal(spec, source),
                HasSubstr("tensor model.layers.1.mlp.gate_proj.weight_scale: element 3 is"));
    EXPECT_THAT(Refusal(spec, Int8Weights(spec, bad)), HasSubstr("input_scale: element 0 is"));
  }
}

// The same integers and scales in the format of bitsandbytes.
struct LlmInt8 {
  explicit LlmInt8(float threshold, const std::string& skip = "null")
      : spec(SmallSpec(fmt::format(
            R"("model_type":"llama","num_key_value_heads":2,"attention_bias":true,)"
            R"("quantization_config":{{"quant_method":"bitsandbytes","load_in_8bit":true,)"
            R"("llm_int8_threshold":{},"llm_int8_skip_modules":{}}})",
            threshold, skip))),
        weights(PerToken()) {
    for (const std::string& module : Modules(spec)) {
      const std::string old = module + ".weight_scale", maxima = module + ".SCB";
      std::vector<float> scales(weights.Find(old)->shape[0]);
      std::memcpy(scales.data(), weights.Bytes(old).data(), scales.size() * sizeof(float));
      weights.Remove(old);
      weights.Add(maxima, DType::kF32, {std::ssize(scales)});
      for (size_t i = 0; i < scales.size(); ++i) {
        weights.Set(maxima, static_cast<int64_t>(i), scales[i] * 127);
      }
      weights.Add(module + ".weight_format", DType::kU8, {});
    }
  }

  DecoderSpec spec;
  Int8Weights weights;
};

TEST(Int8CheckpointTest, LlmInt8WithoutOutliersIsTheSame) {
  const auto expected = LogitsOf(*Load(PerToken(), Int8Weights(PerToken())), kTokens);
  for (const float threshold : {0.0f, 1000.0f}) {
    const LlmInt8 model(threshold);
    EXPECT_EQ(LogitsOf(*Load(model.spec, model.weights), kTokens), expected);
  }
  const LlmInt8 model(0.1f);
  EXPECT_NE(LogitsOf(*Load(model.spec, model.weights), kTokens), expected);
}

TEST(Int8CheckpointTest, LlmInt8OfOlderWritersAndOfZeros) {
  LlmInt8 model(6);
  const auto expected = LogitsOf(*Load(model.spec, model.weights), kTokens);
  const std::string module = "model.layers.1.mlp.up_proj";
  model.weights.Remove(module + ".weight_format");
  EXPECT_EQ(LogitsOf(*Load(model.spec, model.weights), kTokens), expected);
  model.weights.Set(module + ".SCB", 3, 0);
  for (const float logit : LogitsOf(*Load(model.spec, model.weights), kTokens)) {
    EXPECT_TRUE(std::isfinite(logit));
  }
}

TEST(Int8CheckpointTest, LlmInt8Refusals) {
  const std::string module = "model.layers.1.mlp.up_proj";
  const auto refusal = [&](const std::function<void(LlmInt8&)>& harm) {
    LlmInt8 model(6);
    harm(model);
    return Refusal(model.spec, model.weights);
  };
  EXPECT_THAT(
      refusal([&](LlmInt8& m) { m.weights.Bytes(module + ".weight_format")[0] = std::byte{2}; }),
      HasSubstr(module + ".weight_format: element 0 is 2, expected 0, which means row after"));
  EXPECT_THAT(
      refusal([&](LlmInt8& m) { m.weights.Add(module + ".weight_format", DType::kI8, {}); }),
      HasSubstr(module + ".weight_format has type I8, expected U8"));
  EXPECT_THAT(refusal([&](LlmInt8& m) { m.weights.Remove(module + ".SCB"); }),
              HasSubstr("missing tensor " + module + ".SCB, expected [10], for an int8 weight"));
  for (const float bad :
       {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THAT(refusal([&](LlmInt8& m) { m.weights.Set(module + ".SCB", 3, bad); }),
                HasSubstr(module + ".SCB: element 3 is"));
  }
  const LlmInt8 skips(6, R"(["up_proj"])");
  EXPECT_THAT(Refusal(skips.spec, skips.weights),
              AllOf(HasSubstr("config.json quantizes model.layers.0.mlp.up_proj differently from"),
                    HasSubstr("lm_head.weight has type F32, expected I8, because config.json")));
}

// A tied head is an embedding, not a linear layer. An untied head is linear unless it is ignored.
TEST(Int8CheckpointTest, AHeadIsALinearLayerUnlessItIsTied) {
  const DecoderSpec tied = SpecWith(kChannel, kToken, "", R"("tie_word_embeddings":true,)");
  EXPECT_EQ(Load(tied, Int8Weights(tied))->weight_types().head, DType::kF32);
  const DecoderSpec untied = SpecWith(kChannel, kToken, "");
  Int8Weights source(untied);
  source.Quantize("lm_head");
  EXPECT_EQ(Load(untied, source)->weight_types().head, DType::kI8);
}

}  // namespace
}  // namespace godwit::int8_checkpoint_test
