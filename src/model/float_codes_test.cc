// Checkpoints whose layers are floats of 4 or 8 bits: which tensors are read, and the refusals of
// the loader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "model/model_test_support.h"
#include "model/packed_weights.h"

namespace godwit::float_codes_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Layout = PackedFormat::Layout;
using ScaleType = PackedFormat::ScaleType;

const std::vector<int32_t> kTokens = {3, 0, 10, 7, 7, 1};
const std::string kQuery = "model.layers.0.self_attn.q_proj";

DecoderSpec SpecOf(const std::string& quantization) {
  return DescribeModel(
      HfConfig::Parse(fmt::format(R"({{"model_type":"llama","vocab_size":11,"hidden_size":32,)"
                                  R"("num_hidden_layers":1,"num_attention_heads":4,)"
                                  R"("num_key_value_heads":2,"intermediate_size":64,)"
                                  R"("max_position_embeddings":64,"quantization_config":{}}})",
                                  quantization),
                      "config.json"));
}

std::string Compressed(const std::string& format, const std::string& weights) {
  return fmt::format(R"({{"quant_method":"compressed-tensors","format":"{}","ignore":["lm_head"],)"
                     R"("config_groups":{{"g":{{"targets":["Linear"],"weights":{{{}}}}}}}}})",
                     format, weights);
}

const std::string kFp8 = R"({"quant_method":"fp8","activation_scheme":"static"})";
const std::string kChannel =
    Compressed("float-quantized", R"("type":"float","num_bits":8,"strategy":"channel")");
const std::string kNvfp4 =
    Compressed("nvfp4-pack-quantized", R"("type":"float","num_bits":4,"group_size":16)");
const std::string kMxfp8 =
    Compressed("mxfp8-quantized", R"("type":"float","num_bits":8,"group_size":32)");
const std::string kModelOpt = R"({"quant_method":"modelopt","quant_algo":"NVFP4"})";

// Any codes that are numbers, scales of about 1/64.
struct FloatModel {
  explicit FloatModel(const std::string& config) : spec(SpecOf(config)), weights(spec) {
    for (const char* module :
         {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
          "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      Pack(fmt::format("model.layers.0.{}", module));
    }
  }

  void Pack(const std::string& module) {
    const PackedFormat format = spec.quantization.Find(module)->packed.value();
    const std::vector<int64_t> shape = weights.Find(module + ".weight")->shape;
    weights.Remove(module + ".weight");
    const PackedShapes shapes = ShapesOf(format, shape[0], shape[1]);
    const std::string codes = module + std::string(shapes.codes.suffix);
    AddBytes(codes, shapes.codes.shape);
    for (size_t i = 0; i < weights.Bytes(codes).size(); ++i) {
      weights.Bytes(codes)[i] = static_cast<std::byte>(i * 37 & 0xbf);
    }
    if (format.layout == Layout::kFloats8) weights.Retype(codes, "F8_E4M3");
    const std::string scales = module + std::string(shapes.scales.suffix);
    if (format.scale_type == ScaleType::kFloats) {
      weights.Add(scales, DType::kBF16, shapes.scales.shape);
      for (int64_t i = 0; i < weights.Find(scales)->NumElements(); ++i) {
        weights.Set(scales, i, 0.01f + 0.001f * static_cast<float>(i % 7));
      }
    } else {
      AddBytes(scales, shapes.scales.shape);
      const bool powers = format.scale_type == ScaleType::kPowers;
      for (size_t i = 0; i < weights.Bytes(scales).size(); ++i) {
        weights.Bytes(scales)[i] = static_cast<std::byte>((powers ? 120 : 0x08) + i % 3);
      }
      if (!powers) weights.Retype(scales, "F8_E4M3");
    }
    if (format.factor_suffix.empty()) return;
    const std::string factor = module + std::string(format.factor_suffix);
    weights.Add(factor, DType::kF32, {});
    weights.Set(factor, 0, 1.25f);
  }

  void AddBytes(const std::string& name, const std::vector<int64_t>& shape) {
    weights.Add(name, DType::kU8, shape);
  }

  std::vector<float> Logits() const { return LogitsOf(*Load(spec, weights), kTokens); }
  std::string Refusal() const {
    return ErrorOf(ErrorKind::kFormat, [&] { Load(spec, weights); });
  }

  DecoderSpec spec;
  FakeWeights weights;
};

TEST(FloatCodes, ScalesOfInputsAndOfTheCacheAreNotRead) {
  for (const std::string& config : {kFp8, kChannel, kNvfp4, kMxfp8, kModelOpt}) {
    const FloatModel plain(config);
    FloatModel more(config);
    for (const char* unused : {".input_scale", ".input_global_scale", ".k_scale"}) {
      more.weights.Add(kQuery + unused, DType::kF32, {1});
    }
    more.weights.Add("model.layers.0.self_attn.v_scale", DType::kF32, {1});
    EXPECT_EQ(more.Logits(), plain.Logits()) << config;
    for (const float x : plain.Logits()) EXPECT_TRUE(std::isfinite(x));
    more.weights.Add(kQuery + ".pre_quant_scale", DType::kF32, {32});
    EXPECT_THAT(more.Refusal(), HasSubstr("unexpected tensor \"" + kQuery + ".pre_quant_scale"));
  }
}

// NVIDIA's factor multiplies, that of compressed-tensors divides.
TEST(FloatCodes, FactorsMultiplyOrDivide) {
  FloatModel nvidia(kModelOpt), compressed(kNvfp4);
  EXPECT_NE(nvidia.Logits(), compressed.Logits());
  const std::string layer = "model.layers.0.";
  for (const char* module : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
    nvidia.weights.Set(layer + module + ".weight_scale_2", 0, 4);
    compressed.weights.Set(layer + module + ".weight_global_scale", 0, 0.25f);
  }
  EXPECT_EQ(nvidia.Logits(), compressed.Logits());
}

// AutoFP8 calls scales weight_scale, transformers weight_scale_inv; both multiply.
TEST(FloatCodes, ScalesOfFp8HaveTwoNames) {
  const FloatModel plain(kFp8);
  FloatModel other(kFp8);
  other.weights.Remove(kQuery + ".weight_scale");
  EXPECT_THAT(other.Refusal(), HasSubstr("missing tensor " + kQuery +
                                         ".weight_scale, expected "
                                         "[1, 1], for a packed"));
  other.weights.Add(kQuery + ".weight_scale_inv", DType::kBF16, {});
  other.weights.Set(kQuery + ".weight_scale_inv", 0, 0.01f);
  EXPECT_THAT(other.Refusal(), HasSubstr("self_attn.k_proj differently from " + kQuery));
  for (const char* module : {"k_proj", "v_proj"}) {
    const std::string name = fmt::format("model.layers.0.self_attn.{}.weight_scale", module);
    other.weights.Remove(name);
    other.weights.Add(name + "_inv", DType::kBF16, {1});
    other.weights.Set(name + "_inv", 0, 0.01f);
  }
  EXPECT_EQ(other.Logits(), plain.Logits());
}

TEST(FloatCodes, LayersInFloatAreLeftAlone) {
  const std::string out = "model.layers.0.self_attn.o_proj";
  for (const std::string& config : {kFp8, kModelOpt}) {
    FloatModel model(config);
    for (const char* suffix : {".weight", ".weight_scale", ".weight_scale_2"}) {
      model.weights.Remove(out + suffix);
    }
    model.weights.Add(out + ".weight", DType::kF32, {32, 32});
    EXPECT_TRUE(Load(model.spec, model.weights)->weight_types().mixed) << config;
  }
}

TEST(FloatCodes, RefusesOtherTypesAndShapes) {
  FloatModel fp8(kChannel);
  fp8.weights.Retype(kQuery + ".weight", "F8_E5M2");
  fp8.weights.Add("model.layers.0.mlp.up_proj.weight_scale", DType::kF32, {32, 1});
  fp8.AddBytes("model.layers.0.mlp.down_proj.weight", {32, 32});
  fp8.weights.Retype("model.layers.0.mlp.down_proj.weight", "F8_E4M3");
  EXPECT_THAT(fp8.Refusal(),
              AllOf(HasSubstr(kQuery + ".weight has type F8_E5M2, expected F8_E4M3"),
                    HasSubstr("up_proj.weight_scale has shape [32, 1], expected [64, 1]"),
                    HasSubstr("down_proj.weight has shape [32, 32], expected [32, 64]")));
  FloatModel nvfp4(kNvfp4);
  nvfp4.weights.Retype(kQuery + ".weight_scale", "F8_E8M0");
  nvfp4.weights.Remove("model.layers.0.mlp.up_proj.weight_global_scale");
  EXPECT_THAT(
      nvfp4.Refusal(),
      AllOf(HasSubstr(kQuery + ".weight_scale has type F8_E8M0, expected F8_E4M3"),
            HasSubstr("missing tensor model.layers.0.mlp.up_proj.weight_global_scale, expected "
                      "[1], for all scales of a weight")));
  FloatModel mxfp8(kMxfp8);
  mxfp8.weights.Retype(kQuery + ".weight_scale", "F8_E4M3");
  EXPECT_THAT(mxfp8.Refusal(), HasSubstr(".weight_scale has type F8_E4M3, expected U8"));
  mxfp8.weights.Retype(kQuery + ".weight_scale", "F8_E8M0");
  EXPECT_EQ(mxfp8.Logits(), FloatModel(kMxfp8).Logits());
}

TEST(FloatCodes, RefusesWhatIsNoNumber) {
  FloatModel fp8(kChannel);
  fp8.weights.Bytes(kQuery + ".weight")[33] = std::byte{0xff};
  EXPECT_THAT(fp8.Refusal(), HasSubstr("tensor " + kQuery + ".weight: element 33 is not a number"));
  FloatModel scales(kNvfp4);
  scales.weights.Bytes(kQuery + ".weight_scale")[2] = std::byte{0x7f};
  EXPECT_THAT(scales.Refusal(),
              HasSubstr("tensor " + kQuery + ".weight_scale: element 2 is nan, expected a finite"));
  for (const float bad : {0.0f, -1.0f, std::nanf(""), INFINITY, 1e-45f}) {
    FloatModel model(kNvfp4);
    model.weights.Set(kQuery + ".weight_global_scale", 0, bad);
    EXPECT_THAT(model.Refusal(), HasSubstr("tensor " + kQuery + ".weight_global_scale is "));
    EXPECT_THAT(model.Refusal(), HasSubstr("expected a positive number"));
  }
}

// FP8 is rounded to bf16, which holds E4M3 times a power of two. NVFP4's scales are f16 as they
// are, and its factor stays f32.
TEST(FloatCodes, OnlyFp8WithFloatScalesIsRounded) {
  const auto roundings = [](const std::string& config) {
    const FloatModel model(config);
    return RoundingsOf(ResolveTensors(model.spec, model.weights));
  };
  EXPECT_THAT(roundings(kChannel), testing::ElementsAre(HasSubstr("FP8 weights, times their")));
  for (const std::string& config : {kNvfp4, kMxfp8, kModelOpt}) {
    EXPECT_THAT(roundings(config), testing::IsEmpty()) << config;
  }
}

}  // namespace
}  // namespace godwit::float_codes_test
