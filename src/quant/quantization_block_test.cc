#include "quant/quantization_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/test_support.h"

namespace godwit::quant::quantization_block_test {
namespace {

TEST(QuantizationBlock, HasTheCoreKeysAlone) {
  EXPECT_EQ(QuantizationBlock(FindScheme("w8a8"), {"lm_head"}).dump(2), R"({
  "config_groups": {
    "group_0": {
      "targets": [
        "Linear"
      ],
      "weights": {
        "num_bits": 8,
        "type": "int",
        "symmetric": true,
        "strategy": "channel",
        "dynamic": false,
        "group_size": null,
        "block_structure": null,
        "actorder": null,
        "observer": "minmax",
        "observer_kwargs": {}
      },
      "input_activations": {
        "num_bits": 8,
        "type": "int",
        "symmetric": true,
        "strategy": "token",
        "dynamic": true,
        "group_size": null,
        "block_structure": null,
        "actorder": null,
        "observer": null,
        "observer_kwargs": {}
      },
      "output_activations": null
    }
  },
  "format": "int-quantized",
  "ignore": [
    "lm_head"
  ],
  "kv_cache_scheme": null,
  "quant_method": "compressed-tensors",
  "quantization_status": "compressed",
  "global_compression_ratio": null
})");
}

// The block of transformers 5.23, which ignores keys that it does not know.
TEST(QuantizationBlock, BitsandbytesIsThatOfTransformers) {
  EXPECT_EQ(QuantizationBlock(FindScheme("llm-int8"), {"lm_head"}).dump(),
            R"({"_load_in_4bit":false,"_load_in_8bit":true,"bnb_4bit_compute_dtype":"float32",)"
            R"("bnb_4bit_quant_storage":"uint8","bnb_4bit_quant_type":"fp4",)"
            R"("bnb_4bit_use_double_quant":false,"llm_int8_enable_fp32_cpu_offload":false,)"
            R"("llm_int8_has_fp16_weight":false,"llm_int8_skip_modules":["lm_head"],)"
            R"("llm_int8_threshold":6.0,"load_in_4bit":false,"load_in_8bit":true,)"
            R"("quant_method":"bitsandbytes"})");
}

TEST(QuantizationBlock, StrategiesOfTheSchemes) {
  struct Expected {
    const char *scheme, *weights, *input;
    bool dynamic;
  };
  for (const auto& [name, weights, input, dynamic] :
       {Expected{"w8a8", "channel", "token", true}, Expected{"o1", "tensor", "token", true},
        Expected{"o2", "tensor", "tensor", true}, Expected{"o3", "tensor", "tensor", false},
        Expected{"naive", "tensor", "tensor", true},
        Expected{"outlier-suppression", "tensor", "tensor", false},
        Expected{"zeroquant", "channel", "token", true}}) {
    const auto block = QuantizationBlock(FindScheme(name), {})["config_groups"]["group_0"];
    EXPECT_EQ(block["weights"]["strategy"], weights) << name;
    EXPECT_EQ(block["input_activations"]["strategy"], input) << name;
    EXPECT_EQ(block["input_activations"]["dynamic"], dynamic) << name;
  }
}

// The block as in compressed-tensors' presets.
TEST(QuantizationBlock, FourBitsAreThoseOfCompressedTensors) {
  for (const char* name : {"w4a8", "w4a16", "w4a16-asym"}) {
    const auto block = QuantizationBlock(FindScheme(name), {});
    const bool alone = FindScheme(name).weights_alone;
    EXPECT_EQ(block["format"], alone ? "pack-quantized" : "int-quantized");
    const auto& group = block["config_groups"]["group_0"];
    EXPECT_EQ(group["weights"]["num_bits"], 4);
    EXPECT_EQ(group["weights"]["strategy"], "group");
    EXPECT_EQ(group["weights"]["symmetric"], !FindScheme(name).zeros);
    EXPECT_EQ(group["weights"]["group_size"], 128);
    EXPECT_EQ(group["input_activations"].is_null(), alone);
    if (!alone) {
      EXPECT_EQ(group["input_activations"]["num_bits"], 8);
    }
  }
}

TEST(QuantizationBlock, LayersOfEightBitsAreAGroupOfTheirOwn) {
  for (const char* name : {"w4a8", "w4a16"}) {
    const auto groups = QuantizationBlock(FindScheme(name), {}, {"a.b", "c"})["config_groups"];
    EXPECT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups["group_1"]["targets"], (std::vector<std::string>{"a.b", "c"}));
    EXPECT_EQ(groups["group_1"]["weights"]["num_bits"], 8);
    EXPECT_EQ(groups["group_1"]["weights"]["strategy"], "channel");
    EXPECT_EQ(groups["group_1"]["input_activations"], groups["group_0"]["input_activations"]);
  }
}

TEST(RefuseQuantized, ByEitherName) {
  for (const std::string key : {"quantization_config", "compression_config"}) {
    const auto config = HfConfig::Parse("{\"" + key + "\":{}}", "config.json");
    EXPECT_THAT(
        ErrorOf(ErrorKind::kUnsupported, [&] { RefuseQuantized(config, "model"); }),
        testing::HasSubstr("model: the model is quantized already (its config.json has a " + key));
  }
  RefuseQuantized(HfConfig::Parse(R"({"quantization_config":null})", "config.json"), "model");
}

TEST(FindScheme, RefusesOthersWithTheList) {
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [] { FindScheme("w2a16"); }),
              testing::HasSubstr("llm-int8, w4a8, w4a16 or w4a16-asym, found \"w2a16\""));
}

}  // namespace
}  // namespace godwit::quant::quantization_block_test
