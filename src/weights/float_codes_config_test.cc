#include "weights/float_codes_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/test_support.h"
#include "weights/quantization_config.h"

namespace godwit::float_codes_config_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Layout = PackedFormat::Layout;
using ScaleType = PackedFormat::ScaleType;

constexpr PackedFormat kFp8 = {.layout = Layout::kFloats8,
                               .bits = 8,
                               .codes_suffix = ".weight",
                               .scales_suffix = ".weight_scale"};

PackedFormat PerTensor(PackedFormat format = kFp8) {
  format.group_outputs = 0;
  return format;
}

PackedFormat InBlocks(int64_t outputs, int64_t inputs, std::string_view scales_suffix) {
  PackedFormat format = kFp8;
  format.group_outputs = outputs;
  format.group = inputs;
  format.scales_suffix = scales_suffix;
  return format;
}

QuantizationConfig Read(std::string_view block) {
  return QuantizationConfig::Read(
      HfConfig::Parse(fmt::format(R"({{"quantization_config":{}}})", block), "config.json"),
      "lm_head");
}
PackedFormat FormatOf(std::string_view block) {
  return Read(block).Find("model.layers.0.mlp.up_proj")->packed.value();
}
std::string Unsupported(std::string_view block) {
  return ErrorOf(ErrorKind::kUnsupported, [&] { Read(block); });
}

// The block as llm-compressor writes it.
std::string Compressed(std::string_view format, std::string_view weights,
                       std::string_view inputs = "null") {
  return fmt::format(
      R"({{"config_groups":{{"group_0":{{"format":"{}","input_activations":{},)"
      R"("output_activations":null,"targets":["Linear"],"weights":{{{},"dynamic":false,)"
      R"("symmetric":true}}}}}},"format":"{}","ignore":["lm_head"],"kv_cache_scheme":null,)"
      R"("quant_method":"compressed-tensors","quantization_status":"compressed"}})",
      format, inputs, weights, format);
}

constexpr const char* kStatic =
    R"({"dynamic":false,"num_bits":8,"strategy":"tensor","symmetric":true,"type":"float"})";
constexpr const char* kLocal =
    R"({"dynamic":"local","group_size":16,"num_bits":4,"strategy":"tensor_group",)"
    R"("scale_dtype":"torch.float8_e4m3fn","symmetric":true,"type":"float"})";

TEST(FloatCodesConfigTest, ReadsFloatQuantized) {
  const auto of = [](std::string_view rest, std::string_view inputs = kStatic) {
    return FormatOf(Compressed("float-quantized",
                               fmt::format(R"("num_bits":8,"type":"float",{})", rest), inputs));
  };
  EXPECT_EQ(of(R"("strategy":"channel")"), kFp8);
  EXPECT_EQ(of(R"("strategy":"channel")", "null"), kFp8);
  EXPECT_EQ(of(R"("strategy":"tensor","group_size":null)"), PerTensor());
  EXPECT_EQ(of(R"("strategy":"block","block_structure":[128,64])"),
            InBlocks(128, 64, ".weight_scale"));
  EXPECT_EQ(of(R"("strategy":"group","group_size":128)"), InBlocks(1, 128, ".weight_scale"));
  EXPECT_EQ(FormatOf(Compressed("naive-quantized",
                                R"("num_bits":8,"type":"float","strategy":"channel")")),
            kFp8);
  EXPECT_EQ(Describe(kFp8), "8-bit weights (FP8) with a scale for each output");
  EXPECT_EQ(Describe(PerTensor()), "8-bit weights (FP8) with a scale for each tensor");
  EXPECT_EQ(ShortName(kFp8), "FP8");
}

TEST(FloatCodesConfigTest, ReadsFloatsInGroups) {
  const PackedFormat nvfp4 = FormatOf(Compressed(
      "nvfp4-pack-quantized",
      R"("num_bits":4,"type":"float","strategy":"tensor_group","group_size":16)", kLocal));
  EXPECT_EQ(nvfp4, (PackedFormat{.layout = Layout::kFloats4,
                                 .group = 16,
                                 .scale_type = ScaleType::kE4M3,
                                 .codes_suffix = ".weight_packed",
                                 .scales_suffix = ".weight_scale",
                                 .factor_suffix = ".weight_global_scale",
                                 .factor_divides = true}));
  EXPECT_EQ(Describe(nvfp4), "4-bit weights (NVFP4) with a scale for each 16 inputs");
  const PackedFormat mxfp4 = FormatOf(Compressed(
      "mxfp4-pack-quantized", R"("num_bits":4,"type":"float","strategy":"group","group_size":32)"));
  EXPECT_EQ(mxfp4, (PackedFormat{.layout = Layout::kFloats4,
                                 .group = 32,
                                 .scale_type = ScaleType::kPowers,
                                 .codes_suffix = ".weight_packed",
                                 .scales_suffix = ".weight_scale"}));
  EXPECT_EQ(Describe(mxfp4), "4-bit weights (MXFP4) with a scale for each 32 inputs");
  const PackedFormat mxfp8 = FormatOf(Compressed(
      "mxfp8-quantized",
      R"("num_bits":8,"type":"float","strategy":"group","group_size":32,"scale_dtype":"torch.uint8")"));
  PackedFormat want = InBlocks(1, 32, ".weight_scale");
  want.scale_type = ScaleType::kPowers;
  EXPECT_EQ(mxfp8, want);
  EXPECT_EQ(Describe(mxfp8), "8-bit weights (MXFP8) with a scale for each 32 inputs");
}

// The block of DeepSeek V3; then those of AutoFP8, of Mistral and of FBGEMM.
TEST(FloatCodesConfigTest, ReadsFp8) {
  constexpr const char* kBlocks =
      R"({"activation_scheme":"dynamic","fmt":"e4m3","quant_method":"fp8",)"
      R"("weight_block_size":[128,64]})";
  EXPECT_EQ(FormatOf(kBlocks), InBlocks(128, 64, ".weight_scale_inv"));
  EXPECT_EQ(Describe(FormatOf(kBlocks)),
            "8-bit weights (block FP8) with a scale for 64 inputs of 128 outputs");
  EXPECT_EQ(Read(kBlocks).Find("lm_head"), nullptr);
  const auto whole =
      Read(R"({"activation_scheme":"static","ignored_layers":["x.gate","re:.*\\.z"],)"
           R"("quant_method":"fp8"})");
  EXPECT_EQ(whole.Find("x.up")->packed.value(), PerTensor());
  for (const char* left : {"lm_head", "x.gate", "y.z"})
    EXPECT_EQ(whole.Find(left), nullptr) << left;
  EXPECT_EQ(FormatOf(R"({"activation_scheme":"static","modules_to_not_convert":["vision_tower"],)"
                     R"("quant_method":"fp8","weight_block_size":null})"),
            PerTensor());
  const auto fbgemm = Read(R"({"activation_scale_ub":1200.0,"quant_method":"fbgemm_fp8",)"
                           R"("modules_to_not_convert":["model.layers.0","lm_head"]})");
  EXPECT_EQ(fbgemm.Find("model.layers.1.mlp.up_proj")->packed.value(), kFp8);
  EXPECT_EQ(fbgemm.Find("model.layers.0.mlp.up_proj"), nullptr);
}

// The blocks of NVIDIA's checkpoints, older and newer.
std::string ModelOpt(std::string_view algorithm, int bits, std::string_view rest) {
  return fmt::format(
      R"({{"config_groups":{{"group_0":{{"input_activations":{{"dynamic":false,"num_bits":{0},)"
      R"("type":"float"{1}}},"weights":{{"dynamic":false,"num_bits":{0},"type":"float"{1}}},)"
      R"("targets":["Linear"]}}}},"ignore":["lm_head","model.layers.*.mlp.gate","x.0*"],)"
      R"("quant_algo":"{2}","kv_cache_scheme":{{"dynamic":false,"num_bits":8,"type":"float"}},)"
      R"("producer":{{"name":"modelopt","version":"0.29.0"}},"quant_method":"modelopt"}})",
      bits, rest, algorithm);
}

TEST(FloatCodesConfigTest, ReadsModelOpt) {
  const auto fp8 = Read(ModelOpt("FP8", 8, ""));
  EXPECT_EQ(fp8.Find("model.layers.0.mlp.gate_proj")->packed.value(), PerTensor());
  for (const char* left : {"lm_head", "model.layers.17.mlp.gate", "x.0", "x.01.y"}) {
    EXPECT_EQ(fp8.Find(left), nullptr) << left;
  }
  for (const char* found : {"lm_head2", "model.layers.mlp.gate", "y.x.0", "x.1"}) {
    EXPECT_NE(fp8.Find(found), nullptr) << found;
  }
  const PackedFormat nvfp4 = {.layout = Layout::kFloats4,
                              .group = 16,
                              .scale_type = ScaleType::kE4M3,
                              .codes_suffix = ".weight",
                              .scales_suffix = ".weight_scale",
                              .factor_suffix = ".weight_scale_2"};
  EXPECT_EQ(FormatOf(ModelOpt("NVFP4", 4, R"(,"group_size":16)")), nvfp4);
  const auto older =
      Read(R"({"quant_method":"modelopt","quantization":{"exclude_modules":["a*c*"],)"
           R"("group_size":16,"kv_cache_quant_algo":"FP8","quant_algo":"NVFP4"}})");
  EXPECT_EQ(older.Find("x")->packed.value(), nvfp4);
  EXPECT_EQ(older.Find("abcd"), nullptr);
  EXPECT_NE(older.Find("abd"), nullptr);
}

// In transformers' words, of gpt-oss.
TEST(FloatCodesConfigTest, Mxfp4IsOfExperts) {
  const auto config =
      Read(R"({"modules_to_not_convert":["model.layers.*.self_attn"],"quant_method":"mxfp4"})");
  EXPECT_EQ(config.Find("model.layers.3.mlp.experts.gate_up_proj")->packed.value(), kMxfp4);
  EXPECT_EQ(config.Find("model.layers.3.mlp.experts")->packed.value(), kMxfp4);
  EXPECT_EQ(config.Find("model.layers.3.self_attn.q_proj"), nullptr);
  EXPECT_EQ(config.Find("model.layers.3.mlp.router"), nullptr);
}

TEST(FloatCodesConfigTest, OnlyFloatsHaveUnusedScales) {
  EXPECT_THAT(UnusedSuffixes({}), ElementsAre());
  EXPECT_THAT(UnusedSuffixes(kMxfp4), testing::Contains(".input_scale"));
  EXPECT_THAT(UnusedSuffixes(kFp8), testing::Contains(".k_scale"));
}

TEST(FloatCodesConfigTest, RefusesOtherVariantsByName) {
  struct Case {
    const char *block, *message;
  };
  for (const auto& [block, message] : {
           Case{R"("fp8","weight_block_size":[128,128],"fmt":"e5m2")",
                "fmt: expected e4m3, found \"e5m2\""},
           {R"("fp8","fmt":"e5m2")", "fmt: expected e4m3, found \"e5m2\""},
           {R"("fp8","weight_block_size":[128,128],"activation_scheme":"static")",
            "activation_scheme: expected dynamic"},
           {R"("fp8","activation_scheme":"none")", "activation_scheme: expected dynamic or static"},
           {R"("modelopt","quant_algo":"W4A16_AWQ")",
            "quant_algo: expected FP8 or NVFP4, found \"W4A16_AWQ\""},
           {R"("modelopt","quantization":{"quant_algo":"NVFP4","group_size":32})",
            "quantization.group_size: expected 16, found 32"},
           {R"("modelopt","quant_algo":"NVFP4","config_groups":{"g":{"weights":)"
            R"({"num_bits":8,"type":"float"}}})",
            "g.weights.num_bits: expected 4, found 8"},
       }) {
    EXPECT_THAT(Unsupported(fmt::format(R"({{"quant_method":{}}})", block)), HasSubstr(message));
  }
  constexpr const char* kInt8 = R"({"dynamic":true,"num_bits":8,"strategy":"token","type":"int"})";
  struct Compression {
    const char *format, *weights, *inputs, *message;
  };
  for (const auto& [format, weights, inputs, message] : {
           Compression{"float-quantized", R"("num_bits":8,"type":"int")", "null",
                       "weights.type: expected float, found \"int\""},
           {"float-quantized", R"("num_bits":4,"type":"float")", "null",
            "weights.num_bits: expected 8, found 4"},
           {"float-quantized", R"("num_bits":8,"type":"float","strategy":"token")", "null",
            "weights.strategy: expected tensor or channel or group or block"},
           {"float-quantized", R"("num_bits":8,"type":"float")", kInt8,
            "input_activations.type: expected float, found \"int\""},
           {"nvfp4-pack-quantized", R"("num_bits":4,"type":"float","group_size":32)", "null",
            "weights.group_size: expected 16, found 32"},
           {"nvfp4-pack-quantized", R"("num_bits":4,"type":"float","strategy":"group")", "null",
            "weights.strategy: expected tensor_group"},
           {"mxfp4-pack-quantized", R"("num_bits":4,"type":"float")", "null",
            "weights.group_size: expected 32"},
           {"mxfp8-quantized", R"("num_bits":4,"type":"float","group_size":32)", "null",
            "weights.num_bits: expected 8"},
           {"mxfp6-pack-quantized", R"("num_bits":6,"type":"float","group_size":32)", "null",
            "found \"mxfp6-pack-quantized\""},
       }) {
    EXPECT_THAT(Unsupported(Compressed(format, weights, inputs)), HasSubstr(message));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] { Read(R"({"quant_method":"fp8","weight_block_size":[128]})"); }),
              HasSubstr("weight_block_size: expected the outputs and inputs of a block"));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] {
                        Read(Compressed("float-quantized",
                                        R"("num_bits":8,"type":"float","strategy":"block")"));
                      }),
              HasSubstr("block_structure: expected the outputs and inputs of a block"));
}

}  // namespace
}  // namespace godwit::float_codes_config_test
