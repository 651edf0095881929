#include "weights/packed_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "weights/quantization_config.h"

namespace godwit::packed_config_test {
namespace {

using ::testing::HasSubstr;
using Layout = PackedFormat::Layout;

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
std::string PackQuantized(std::string_view weights, std::string_view inputs = "null") {
  return fmt::format(
      R"({{"config_groups":{{"group_0":{{"input_activations":{},"output_activations":null,)"
      R"("targets":["Linear"],"weights":{{{}}}}}}},"format":"pack-quantized","ignore":["lm_head"],)"
      R"("quant_method":"compressed-tensors","quantization_status":"compressed"}})",
      inputs, weights);
}
constexpr const char* kGroup128 =
    R"("actorder":null,"block_structure":null,"dynamic":false,"group_size":128,"num_bits":4,)"
    R"("observer":"minmax","observer_kwargs":{},"strategy":"group","symmetric":true,"type":"int")";

TEST(PackedConfigTest, ReadsPackQuantized) {
  EXPECT_EQ(FormatOf(PackQuantized(kGroup128)), (PackedFormat{.group = 128}));
  EXPECT_EQ(Read(PackQuantized(kGroup128)).Find("lm_head"), nullptr);
  EXPECT_EQ(Describe(*Read(PackQuantized(kGroup128)).Find("x")),
            "4-bit weights (pack-quantized) with a scale for each 128 inputs");
  const PackedFormat channel = FormatOf(
      PackQuantized(R"("num_bits":8,"strategy":"channel","symmetric":false,"group_size":null)"));
  EXPECT_EQ(channel, (PackedFormat{.bits = 8, .zeros = true}));
  EXPECT_EQ(Describe(channel),
            "8-bit weights (pack-quantized) with a scale and a zero point for each output");
  EXPECT_EQ(ShortName(channel), "W8A16");
}

TEST(PackedConfigTest, OnlyOrdersOfGroupsAreSeen) {
  const auto orders = [](const char* order) {
    return FormatOf(
               PackQuantized(fmt::format(R"("num_bits":4,"group_size":64,"actorder":{})", order)))
        .act_order;
  };
  for (const char* order : {"\"group\"", "\"dynamic\"", "true"}) EXPECT_TRUE(orders(order));
  for (const char* order : {"\"weight\"", "\"static\"", "false", "null"})
    EXPECT_FALSE(orders(order));
}

// Int8 inputs for each token are computed here.
TEST(PackedConfigTest, InputsMayBeInt8PerToken) {
  EXPECT_EQ(FormatOf(PackQuantized(kGroup128, R"({"strategy":"token","dynamic":true})")),
            (PackedFormat{.group = 128}));
  EXPECT_THAT(Unsupported(PackQuantized(kGroup128, R"({"strategy":"tensor","dynamic":true})")),
              HasSubstr("input_activations: expected none, or symmetric int8 per token"));
}

TEST(PackedConfigTest, ReadsGptq) {
  constexpr const char* kPublished =
      R"({"bits":4,"damp_percent":0.1,"desc_act":true,"group_size":128,"model_file_base_name":"model",)"
      R"("model_name_or_path":null,"quant_method":"gptq","sym":true,"true_sequential":true})";
  EXPECT_EQ(FormatOf(kPublished),
            (PackedFormat{
                .layout = Layout::kGptq, .group = 128, .zeros_less_1 = true, .act_order = true}));
  EXPECT_EQ(Describe(FormatOf(kPublished)),
            "4-bit weights (GPTQ) with a scale for each 128 inputs, in act order");
  EXPECT_EQ(Read(kPublished).Find("lm_head"), nullptr);
  constexpr const char* kNewer =
      R"({"bits":8,"checkpoint_format":"gptq_v2","desc_act":false,"dynamic":{"-:.*gate$":{}},)"
      R"("group_size":-1,"lm_head":true,"meta":{"quantizer":["gptqmodel:1.4"]},"pack_dtype":"int32",)"
      R"("quant_method":"gptq","sym":false})";
  EXPECT_EQ(FormatOf(kNewer), (PackedFormat{.layout = Layout::kGptq, .bits = 8, .zeros = true}));
  EXPECT_NE(Read(kNewer).Find("lm_head"), nullptr);
}

TEST(PackedConfigTest, ReadsAwq) {
  constexpr const char* kPublished =
      R"({"bits":4,"group_size":128,"modules_to_not_convert":["gate"],"quant_method":"awq",)"
      R"("version":"gemm","zero_point":true})";
  EXPECT_EQ(FormatOf(kPublished),
            (PackedFormat{.layout = Layout::kAwq, .group = 128, .zeros = true}));
  EXPECT_EQ(Read(kPublished).Find("lm_head"), nullptr);
  EXPECT_EQ(Read(kPublished).Find("model.layers.1.block_sparse_moe.gate"), nullptr);
  EXPECT_EQ(Describe(FormatOf(kPublished)),
            "4-bit weights (AWQ) with a scale and a zero point for each 128 inputs");
}

// The block as transformers writes it.
TEST(PackedConfigTest, ReadsNf4) {
  constexpr const char* kPublished =
      R"({"_load_in_4bit":true,"bnb_4bit_compute_dtype":"bfloat16","bnb_4bit_quant_storage":"uint8",)"
      R"("bnb_4bit_quant_type":"nf4","bnb_4bit_use_double_quant":true,"llm_int8_skip_modules":null,)"
      R"("load_in_4bit":true,"load_in_8bit":false,"quant_method":"bitsandbytes"})";
  EXPECT_EQ(FormatOf(kPublished),
            (PackedFormat{.layout = Layout::kNf4, .group = 64, .nested = true}));
  EXPECT_EQ(Describe(FormatOf(kPublished)),
            "4-bit weights (bitsandbytes nf4) with the 8-bit code of a scale for each 64 inputs");
  EXPECT_EQ(Read(kPublished).Find("lm_head"), nullptr);
  // Before quant_method there was one method.
  EXPECT_EQ(FormatOf(R"({"load_in_4bit":true,"bnb_4bit_quant_type":"nf4"})"),
            (PackedFormat{.layout = Layout::kNf4, .group = 64}));
}

std::string StateRefusal(ErrorKind kind, const std::string& json) {
  const TensorInfo tensor{.name = "x.quant_state",
                          .dtype = DType::kU8,
                          .shape = {std::ssize(json)},
                          .bytes = std::as_bytes(std::span(json))};
  const PackedFormat format{.layout = Layout::kNf4, .group = 64, .nested = true};
  return ErrorOf(kind, [&] { ReadNf4State(tensor, format, 2, 64); });
}

TEST(PackedConfigTest, RefusesOtherStatesOfNf4) {
  const auto state = [](const char* type, int block, int outputs, const char* rest) {
    return fmt::format(R"({{"quant_type":"{}","blocksize":{},"shape":[{},64]{}}})", type, block,
                       outputs, rest);
  };
  constexpr auto kUnsupported = ErrorKind::kUnsupported, kFormat = ErrorKind::kFormat;
  EXPECT_THAT(StateRefusal(kUnsupported, state("fp4", 64, 2, "")),
              HasSubstr("tensor x.quant_state: quant_type: expected nf4, found \"fp4\""));
  EXPECT_THAT(StateRefusal(kUnsupported, state("nf4", 128, 2, "")),
              HasSubstr("blocksize: expected 64, found 128"));
  EXPECT_THAT(StateRefusal(kFormat, state("nf4", 64, 3, "")), HasSubstr("shape: expected [2, 64]"));
  EXPECT_THAT(StateRefusal(kFormat, state("nf4", 64, 2, "")), HasSubstr("nested_blocksize"));
  EXPECT_THAT(StateRefusal(kFormat, state("nf4", 64, 2, R"(,"nested_blocksize":0)")),
              HasSubstr("nested_blocksize: expected a whole number from 1"));
  EXPECT_THAT(StateRefusal(kFormat, "nf4"), HasSubstr("x.quant_state"));
  EXPECT_THAT(StateRefusal(kFormat, std::string(70000, ' ')), HasSubstr("has 70000 bytes"));
}

TEST(PackedConfigTest, RefusesOtherLevelsOfNf4) {
  const auto published = LevelsOf({.layout = Layout::kNf4});
  std::vector<float> levels(published.begin(), published.end());
  const TensorInfo tensor{.name = "x.quant_map",
                          .dtype = DType::kF32,
                          .shape = {16},
                          .bytes = std::as_bytes(std::span(levels))};
  CheckNf4Levels(tensor);
  levels[3] = -0.4f;
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { CheckNf4Levels(tensor); }),
              HasSubstr("tensor x.quant_map: level 3 is -0.4, expected -0.394917"));
}

TEST(PackedConfigTest, RefusesOtherVariantsByName) {
  struct Case {
    const char *fields, *message;
  };
  for (const auto& [fields, message] : {
           Case{R"("gptq","bits":3)", "quantization_config.bits: expected 4 or 8, found 3"},
           {R"("gptq","bits":4,"group_size":40)",
            "group_size: expected -1 or a multiple of 16, found 40"},
           {R"("gptq","bits":4,"group_size":0)", "group_size: expected -1 or a multiple of 16"},
           {R"("gptq","bits":4,"group_size":64,"checkpoint_format":"marlin")",
            "checkpoint_format: expected gptq or gptq_v2, found \"marlin\""},
           {R"("gptq","bits":4,"group_size":64,"is_marlin_format":true)", "is_marlin_format"},
           {R"("gptq","bits":4,"group_size":64,"pack_dtype":"int16")", "pack_dtype"},
           {R"("gptq","bits":4,"group_size":64,"dynamic":{"+:.*down.*":{"bits":8}})",
            "dynamic: expected no separate bits or groups for single layers"},
           {R"("bitsandbytes","load_in_4bit":true)",
            "bnb_4bit_quant_type: expected nf4, found none"},
           {R"("bitsandbytes","load_in_4bit":true,"bnb_4bit_quant_type":"nf4",)"
            R"("bnb_4bit_quant_storage":"bfloat16")",
            "bnb_4bit_quant_storage: expected uint8"},
           {R"("awq","bits":8,"group_size":64)", "bits: expected 4, found 8"},
           {R"("awq","bits":4,"group_size":64,"version":"gemv")", "version: expected gemm or GEMM"},
           {R"("awq","bits":4,"group_size":64,"zero_point":false)", "zero_point: expected true"},
       }) {
    EXPECT_THAT(Unsupported(fmt::format(R"({{"quant_method":{}}})", fields)), HasSubstr(message));
  }
  for (const auto& [fields, message] : {
           Case{R"("num_bits":2,"group_size":64)", "weights.num_bits: expected 4 or 8, found 2"},
           {R"("type":"float","group_size":64)", "weights.type: expected int"},
           {R"("num_bits":4)", "weights.strategy: expected group or channel"},
           {R"("num_bits":4,"group_size":64,"dynamic":true)", "weights.dynamic"},
           {R"("num_bits":4,"group_size":64,"actorder":"random")", "weights.actorder"},
           {R"("num_bits":4,"group_size":24)", "weights.group_size: expected -1 or a multiple of"},
       }) {
    EXPECT_THAT(Unsupported(PackQuantized(fields)), HasSubstr(message));
  }
}

}  // namespace
}  // namespace godwit::packed_config_test
