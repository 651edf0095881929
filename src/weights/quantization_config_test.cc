#include "weights/quantization_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::quantization_config_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
constexpr const char* kWeights = R"("num_bits":8,"type":"int","symmetric":true,"strategy":"channel",
    "dynamic":false,"group_size":null,"block_structure":null,"actorder":null,"observer":"minmax",
    "observer_kwargs":{})";
constexpr const char* kInput = R"("num_bits":8,"type":"int","symmetric":true,"strategy":"token",
    "dynamic":true,"group_size":null,"observer":null)";

std::string Group(std::string_view targets, std::string_view weights = kWeights,
                  std::string_view input = kInput, std::string_view rest = "") {
  return fmt::format(
      R"({{"targets":[{}],"weights":{{{}}},"input_activations":{{{}}},"output_activations":null{}}})",
      targets, weights, input, rest);
}

// The block as llm-compressor writes it, with one group or more.
std::string Block(std::string_view groups, std::string_view ignore = R"("lm_head")",
                  std::string_view format = "int-quantized") {
  return fmt::format(
      R"({{"config_groups":{{{}}},"format":"{}","ignore":[{}],"kv_cache_scheme":null,)"
      R"("quant_method":"compressed-tensors","quantization_status":"compressed",)"
      R"("global_compression_ratio":null}})",
      groups, format, ignore);
}

std::string OneGroup(std::string_view group) { return fmt::format(R"("group_0":{})", group); }

QuantizationConfig Read(std::string_view block, std::string_view key = "quantization_config") {
  return QuantizationConfig::Read(
      HfConfig::Parse(fmt::format(R"({{"{}":{}}})", key, block), "config.json"), "lm_head");
}

// The quantization of the only group.
LayerQuantization Quantization(std::string_view weights, std::string_view input) {
  const QuantizationConfig config = Read(Block(OneGroup(Group(R"("Linear")", weights, input))));
  EXPECT_THAT(config.Distinct(), testing::SizeIs(1));
  return config.Distinct().at(0);
}

std::string Unsupported(std::string_view block) {
  return ErrorOf(ErrorKind::kUnsupported, [&] { Read(block); });
}

TEST(QuantizationConfigTest, ReadsWhatLlmCompressorWrites) {
  const QuantizationConfig config = Read(Block(OneGroup(Group(R"("Linear")"))));
  const LayerQuantization* quantization = config.Find("model.layers.0.self_attn.q_proj");
  ASSERT_NE(quantization, nullptr);
  EXPECT_EQ(*quantization, LayerQuantization());
  EXPECT_EQ(Describe(*quantization),
            "int8 weights with a scale per output, input quantized per token");
  EXPECT_EQ(config.Find("lm_head"), nullptr);
  EXPECT_NE(config.Find("lm_head2"), nullptr) << "a name is the whole name";
}

TEST(QuantizationConfigTest, NothingIsQuantizedWithoutOne) {
  for (const char* text : {"{}", R"({"quantization_config":null})"}) {
    const auto config = QuantizationConfig::Read(HfConfig::Parse(text, "config.json"), "lm_head");
    EXPECT_THAT(config.Distinct(), IsEmpty());
    EXPECT_EQ(config.Find("lm_head"), nullptr);
  }
  EXPECT_EQ(Read(Block("")).Find("lm_head2"), nullptr);
}

TEST(QuantizationConfigTest, ReadsOlderAndNewerSpellings) {
  const std::string group = Group(R"("Linear")");
  EXPECT_NE(Read(Block(OneGroup(group)), "compression_config").Find("x"), nullptr);
  EXPECT_NE(Read(Block(OneGroup(group), "", "naive-quantized")).Find("lm_head"), nullptr);
  // A block with the required keys alone.
  EXPECT_NE(Read(R"({"config_groups":{"a":{"targets":["Linear"],"weights":{"group_size":-1},)"
                 R"("input_activations":{"dynamic":true,"strategy":"token"}}},)"
                 R"("format":"int-quantized","quantization_status":"frozen"})")
                .Find("x"),
            nullptr);
  // Keys that later versions added.
  std::string newer = Block(OneGroup(
      Group(R"("Linear")", kWeights, kInput, R"(,"format":"int-quantized","scale_dtype":null)")));
  newer.pop_back();
  newer += R"(,"version":"0.13","sparsity_config":{},"transform_config":{},"unheard_of":[1]})";
  EXPECT_NE(Read(newer).Find("x"), nullptr);
}

TEST(QuantizationConfigTest, ReadsEveryScheme) {
  const auto scale_of = [](std::string_view input) {
    return Quantization(kWeights, input).input.kind;
  };
  EXPECT_EQ(scale_of(R"("strategy":"token","dynamic":true)"), InputScale::kPerToken);
  EXPECT_EQ(scale_of(R"("strategy":"tensor","dynamic":true)"), InputScale::kPerTensor);
  EXPECT_EQ(scale_of(R"("strategy":"tensor","dynamic":false)"), InputScale::kStatic);
  EXPECT_EQ(scale_of(""), InputScale::kStatic) << "tensor and static are the defaults";
  EXPECT_EQ(scale_of(R"("dynamic":true)"), InputScale::kPerTensor);
  EXPECT_TRUE(Quantization(kWeights, "").input.symmetric);
  EXPECT_FALSE(Quantization(kWeights, R"("symmetric":false)").input.symmetric);
  EXPECT_FALSE(Quantization("", kInput).scale_per_output) << "tensor is the default";
  EXPECT_FALSE(Quantization(R"("strategy":"tensor")", kInput).scale_per_output);
  EXPECT_TRUE(Quantization(R"("group_size":-1)", kInput).scale_per_output);
  EXPECT_EQ(Describe(Quantization("", R"("symmetric":false)")),
            "int8 weights with a scale per tensor, input quantized with a static scale, "
            "asymmetric");
}

TEST(QuantizationConfigTest, TokensOfAStepMayGetScalesOfTheirOwn) {
  const auto read = [](const char* input) {
    return Read(Block(OneGroup(Group(R"("Linear")", R"("strategy":"channel")", input))));
  };
  QuantizationConfig shared = read(R"("dynamic":true,"symmetric":false)");
  const QuantizationConfig as_read = shared;
  EXPECT_TRUE(shared.ScaleEachToken());
  EXPECT_EQ(shared.Find("x")->input,
            (InputQuantization{.kind = InputScale::kPerToken, .symmetric = false}));
  EXPECT_EQ(as_read.Find("x")->input.kind, InputScale::kPerTensor) << "a copy stays as it was";
  EXPECT_FALSE(shared.ScaleEachToken()) << "nothing is left to change";
  QuantizationConfig fixed = read("");
  EXPECT_FALSE(fixed.ScaleEachToken());
  EXPECT_EQ(fixed.Find("x")->input.kind, InputScale::kStatic);
  EXPECT_FALSE(QuantizationConfig().ScaleEachToken());
}

TEST(QuantizationConfigTest, ExpressionsBindAtTheStart) {
  const auto config =
      Read(Block(OneGroup(Group(R"("re:.*layers\\.\\d+\\..*_proj")")),
                 R"("re:.*down_proj$","re:visual","re:model.layers.(0|1).self_attn")"));
  EXPECT_NE(config.Find("model.layers.10.mlp.up_proj"), nullptr);
  EXPECT_NE(config.Find("model.layers.10.mlp.up_projection"), nullptr) << "ends are open";
  EXPECT_EQ(config.Find("model.layers.10.mlp.down_proj"), nullptr);
  EXPECT_NE(config.Find("model.layers.10.mlp.down_proj_2"), nullptr);
  EXPECT_NE(config.Find("model.visual.layers.2.up_proj"), nullptr) << "starts are not";
  EXPECT_EQ(config.Find("visual.layers.2.up_proj"), nullptr);
  EXPECT_EQ(config.Find("model.layers.1.self_attn.q_proj"), nullptr);
  EXPECT_EQ(config.Find("lm_head"), nullptr) << "targeted by nobody";
}

TEST(QuantizationConfigTest, MoreSpecificGroupWins) {
  const std::string tensor = R"("strategy":"tensor")";
  const auto config = Read(
      Block(fmt::format(R"("a":{},"b":{},"c":{})",
                        Group(R"("Linear")", kWeights, kInput, R"(,"format":"int-quantized")"),
                        Group(R"("re:.*mlp.*")", tensor, kInput, R"(,"format":"naive-quantized")"),
                        Group(R"("x.mlp.up")", kWeights, "", R"(,"format":"int-quantized")")),
            "", "mixed-precision"));
  EXPECT_EQ(*config.Find("x.q"), LayerQuantization());
  EXPECT_FALSE(config.Find("x.mlp.down")->scale_per_output);
  EXPECT_EQ(config.Find("x.mlp.up")->input.kind, InputScale::kStatic);
  EXPECT_THAT(config.Distinct(), testing::SizeIs(3));
}

// Weights in groups or of 4 bits become packed layers, with a byte for each code.
TEST(QuantizationConfigTest, ReadsIntegersInGroups) {
  for (const auto& [weights, bits, group] :
       {std::tuple{R"("num_bits":4,"strategy":"group","group_size":128)", 4, 128},
        {R"("num_bits":8,"group_size":32)", 8, 32},
        {R"("num_bits":4,"strategy":"channel")", 4, 0}}) {
    const auto config = Read(Block(OneGroup(Group(R"("Linear")", weights, kInput))));
    const auto& packed = config.Find("x.mlp.up")->packed;
    ASSERT_TRUE(packed) << weights;
    EXPECT_EQ(packed->layout, PackedFormat::Layout::kIntQuantized);
    EXPECT_EQ(packed->bits, bits);
    EXPECT_EQ(packed->group, group);
  }
}

TEST(QuantizationConfigTest, RefusesOtherSchemesByName) {
  struct Case {
    const char *weights, *input, *message;
  };
  for (const auto& [weights, input, message] : {
           Case{R"("type":"float")", kInput, "group_0.weights.type: expected int, found \"float\""},
           {R"("num_bits":4)", kInput, "weights.strategy: expected group or channel, found none"},
           {R"("num_bits":3,"strategy":"group","group_size":32)", kInput, "weights.num_bits"},
           {R"("symmetric":false)", kInput, "weights.symmetric: expected true, found false"},
           {R"("dynamic":true)", kInput, "weights.dynamic: expected false"},
           {R"("strategy":"group","group_size":24)", kInput,
            "weights.group_size: expected -1 or a multiple of 16, found 24"},
           {R"("group_size":8)", kInput, "weights.group_size: expected -1 or a multiple of 16"},
           {R"("strategy":"group","group_size":32,"symmetric":false)", kInput,
            "weights.symmetric: expected true, found false"},
           {R"("strategy":"block")", kInput, "weights.strategy"},
           {kWeights, R"("strategy":"token","dynamic":false)",
            "input_activations.dynamic: expected true, because the strategy is token, found false"},
           {kWeights, R"("strategy":"group")", "input_activations.strategy: expected token or"},
           {kWeights, R"("num_bits":4)", "input_activations.num_bits: expected 8"},
           {kWeights, R"("type":"float")", "input_activations.type: expected int"},
       }) {
    EXPECT_THAT(Unsupported(Block(OneGroup(Group(R"("Linear")", weights, input)))),
                HasSubstr(message));
  }
}

// A storage of cached keys and values changes no weight, with any method.
TEST(QuantizationConfigTest, StorageOfCachesIsAHint) {
  const auto scheme = [](std::string_view block) { return Read(block).cache_scheme(); };
  EXPECT_EQ(scheme(R"({"config_groups":{}})"), "");
  EXPECT_EQ(scheme(R"({"config_groups":{},"kv_cache_scheme":null})"), "");
  for (const char* begin :
       {R"("config_groups":{})", R"("quant_method":"fp8")", R"("quant_method":"fbgemm_fp8")",
        R"("quant_method":"modelopt","quant_algo":"FP8")"}) {
    const auto with = [&](std::string_view fields) {
      return fmt::format(R"({{{},"kv_cache_scheme":{{{}}}}})", begin, fields);
    };
    EXPECT_EQ(scheme(with(R"("num_bits":8,"type":"float","strategy":"tensor")")), "8-bit floats");
    EXPECT_EQ(scheme(with(R"("num_bits":4)")), "4-bit integers");
    EXPECT_THAT(Unsupported(with(R"("type":"complex")")),
                HasSubstr("kv_cache_scheme.type: expected int or float, found \"complex\""));
  }
  EXPECT_EQ(scheme(R"({"quant_method":"modelopt","quantization":{"quant_algo":"FP8",)"
                   R"("exclude_modules":[],"kv_cache_quant_algo":"NVFP4"}})"),
            "NVFP4");
}

TEST(QuantizationConfigTest, RefusesOtherStorageByName) {
  const auto with = [](std::string_view fields) {
    return Unsupported(fmt::format(R"({{"config_groups":{{}},{}}})", fields));
  };
  EXPECT_THAT(
      with(R"("quant_method":"aqlm")"),
      HasSubstr(
          "config.json: quantization_config.quant_method: expected "
          "compressed-tensors or bitsandbytes or gptq or awq or mxfp4 or fp8 or fbgemm_fp8 or "
          "modelopt, found \"aqlm\""));
  EXPECT_THAT(with(R"("quantization_status":"calibration")"), HasSubstr("quantization_status"));
  EXPECT_THAT(with(R"("transform_config":{"config_groups":{}})"), HasSubstr("transform_config"));
  EXPECT_THAT(with(R"("sparsity_config":{"format":"sparse-24-bitmask"})"),
              HasSubstr("sparsity_config.format: expected dense"));
  for (const char* format : {"marlin-24", "mxfp6-pack-quantized", "dense"}) {
    EXPECT_THAT(Unsupported(Block(OneGroup(Group(R"("Linear")")), "", format)),
                HasSubstr("format: expected int-quantized or naive-quantized or pack-quantized"));
  }
  EXPECT_THAT(Unsupported(Block(OneGroup(Group(R"("Linear")")), "", "mixed-precision")),
              HasSubstr("quantization_config.format"));
  EXPECT_THAT(
      Unsupported(Block(OneGroup(
          R"({"targets":["Linear"],"weights":{"strategy":"channel"},"format":"int-quantized"})"))),
      HasSubstr("group_0.input_activations: expected int8, like the weights, found none"));
  EXPECT_THAT(Unsupported(Block(OneGroup(
                  R"({"targets":["Linear"],"weights":{},"output_activations":{"num_bits":8}})"))),
              HasSubstr("group_0.output_activations: expected none"));
}

// The block as transformers writes it for bitsandbytes.
std::string LlmInt8(std::string_view skip = "null", std::string_view rest = "") {
  return fmt::format(
      R"({{"_load_in_4bit":false,"_load_in_8bit":true,"bnb_4bit_compute_dtype":"float32",)"
      R"("llm_int8_enable_fp32_cpu_offload":false,"llm_int8_has_fp16_weight":false,)"
      R"("llm_int8_skip_modules":{},"llm_int8_threshold":6.0,"load_in_4bit":false,)"
      R"("load_in_8bit":true,"quant_method":"bitsandbytes"{}}})",
      skip, rest);
}

TEST(QuantizationConfigTest, ReadsLlmInt8) {
  const QuantizationConfig config = Read(LlmInt8());
  const LayerQuantization* quantization = config.Find("model.layers.0.self_attn.q_proj");
  ASSERT_NE(quantization, nullptr);
  EXPECT_EQ(*quantization, (LayerQuantization{.input = {.outlier_threshold = 6},
                                              .format = Int8Format::kBitsandbytes}));
  EXPECT_EQ(Describe(*quantization),
            "int8 weights with a scale per output, input quantized per token, its elements of 6 or "
            "more in float");
  EXPECT_EQ(config.Find("lm_head"), nullptr) << "as the caller calls it";
  EXPECT_NE(config.Find("embed_out"), nullptr);
  // Before quant_method there was one method, and before the threshold it was 6.
  const QuantizationConfig old = Read(R"({"load_in_8bit":true})");
  EXPECT_EQ(old.Distinct(), config.Distinct());
  const auto exact = Read(R"({"load_in_8bit":true,"llm_int8_threshold":0.0})");
  EXPECT_EQ(exact.Find("x")->input, InputQuantization());
}

TEST(QuantizationConfigTest, LlmInt8SkipsPartsOfNames) {
  const auto config = Read(LlmInt8(R"(["lm_head","model.layers.1","mlp","v_proj"])"));
  for (const char* skipped : {"lm_head", "model.layers.1.self_attn.q_proj", "x.0.mlp.up", "x.mlp",
                              "model.layers.0.self_attn.v_proj", "x.qv_proj"}) {
    EXPECT_EQ(config.Find(skipped), nullptr) << skipped;
  }
  for (const char* found : {"model.layers.10.self_attn.q_proj", "x.mlps.up", "x.v_proj_2"}) {
    EXPECT_NE(config.Find(found), nullptr) << found;
  }
  EXPECT_NE(Read(LlmInt8("[]")).Find("lm_head"), nullptr) << "a list is all of it";
}

TEST(QuantizationConfigTest, RefusesOtherUsesOfBitsandbytes) {
  EXPECT_THAT(Unsupported(R"({"quant_method":"bitsandbytes","load_in_4bit":true})"),
              HasSubstr("quantization_config.bnb_4bit_quant_type: expected nf4, found none"));
  EXPECT_THAT(Unsupported(R"({"quant_method":"bitsandbytes"})"),
              HasSubstr("load_in_8bit: expected true"));
  EXPECT_THAT(Unsupported(R"({"load_in_8bit":true,"llm_int8_has_fp16_weight":true})"),
              HasSubstr("llm_int8_has_fp16_weight: expected false, found true"));
  EXPECT_THAT(Unsupported(LlmInt8(R"(["layers.*"])")),
              HasSubstr("llm_int8_skip_modules: expected names of modules, not \"layers.*\""));
  EXPECT_THAT(ErrorOf(ErrorKind::kFormat,
                      [] { Read(R"({"load_in_8bit":true,"llm_int8_threshold":-1.0})"); }),
              HasSubstr("llm_int8_threshold"));
}

TEST(QuantizationConfigTest, RefusesExpressionsThatItCannotMatch) {
  for (const char* pattern : {"re:(", "re:(?P<name>x)", "re:(a)\\\\1",
                              "re:(a)\\\\18446744073709551615", "re:[0-9]{1,2}"}) {
    EXPECT_THAT(Unsupported(Block(OneGroup(Group(R"("Linear")")), fmt::format(R"("{}")", pattern))),
                HasSubstr("quantization_config.ignore: expected names and simple regular"));
  }
  Unsupported(Block(OneGroup(Group(fmt::format(R"("re:{}")", std::string(5000, 'a'))))));
  // An expression that would never end if it were tried in every way.
  const auto config = Read(Block(OneGroup(Group(R"("re:(a*)*(a*)*(a*)*b")"))));
  EXPECT_EQ(config.Find(std::string(60, 'a')), nullptr);
}

TEST(QuantizationConfigTest, RefusesWhatIsNone) {
  for (const char* block :
       {"[]", "8", "{}", R"({"config_groups":[]})", R"({"config_groups":{"a":["Linear"]}})",
        R"({"config_groups":{"a":{"targets":["Linear"],"format":"int-quantized",)"
        R"("weights":{"num_bits":{"default":8}},"input_activations":{}}}})"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kFormat, [&] { Read(block); }),
                HasSubstr("quantization_config"));
  }
}

TEST(QuantizationConfigTest, NamesOfGroupsMayBeAnything) {
  const std::string name = R"(\u001b[2J)" + std::string(100'000, 'x');
  for (const std::string& group : {std::string("7"), Group(R"("Linear")", R"("num_bits":4)")}) {
    const Error error = ErrorOf([&] { Read(Block(fmt::format(R"("{}":{})", name, group))); });
    EXPECT_LT(std::string_view(error.what()).size(), 600u);
    EXPECT_THAT(error.what(), testing::Not(HasSubstr("\x1b")));
  }
}

}  // namespace
}  // namespace godwit::quantization_config_test
