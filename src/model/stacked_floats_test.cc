// Checkpoints whose experts are one tensor in FP8: the scales that are read, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/model_test_support.h"
#include "model/packed_weights.h"
#include "model/synthetic_weights.h"

namespace godwit::stacked_floats_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<int32_t> kTokens = {3, 0, 10, 7, 7, 1};
constexpr int64_t kExperts = 3, kHidden = 20, kWidth = 12;

// A family whose experts are one tensor, and the names of its modules.
struct Family {
  const char* name;
  const char* fields;
  const char* up;
  const char* down;
  const char* ending;  // of the tensors' names
  bool transposed;
};
constexpr Family kFamilies[] = {
    {"granitemoe", R"("num_local_experts":3,"num_experts_per_tok":2,"intermediate_size":12)",
     "model.layers.{}.block_sparse_moe.input_linear",
     "model.layers.{}.block_sparse_moe.output_linear", ".weight", false},
    {"llama4_text",
     R"("num_local_experts":3,"num_experts_per_tok":1,"intermediate_size":12,"head_dim":8,)"
     R"("intermediate_size_mlp":16,"interleave_moe_layer_step":1,"attention_chunk_size":16,)"
     R"("no_rope_layers":[1,1],"use_qk_norm":false)",
     "model.layers.{}.feed_forward.experts.gate_up_proj",
     "model.layers.{}.feed_forward.experts.down_proj", "", true}};

DecoderSpec SpecOf(const Family& family, const std::string& quantization) {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"{}","vocab_size":11,"hidden_size":20,"num_hidden_layers":2,)"
                  R"("num_attention_heads":4,"num_key_value_heads":2,"max_position_embeddings":64,)"
                  R"({}{}}})",
                  family.name, family.fields,
                  quantization.empty() ? "" : ",\"quantization_config\":" + quantization),
      "config.json"));
}

// How the scales of a matrix of all experts are stored.
struct Scales {
  const char* config;
  const char* ending;   // behind the tensor's name
  int64_t rows, cols;   // of a block of the stored matrix; 0: all
  bool of_all = false;  // experts share one
};
constexpr const char* kBlocks =
    R"({"quant_method":"fp8","activation_scheme":"dynamic","weight_block_size":[8,5]})";
constexpr const char* kWhole = R"({"quant_method":"fp8","activation_scheme":"static"})";
constexpr const char* kFbgemm = R"({"quant_method":"fbgemm_fp8"})";
constexpr const char* kModelOpt = R"({"quant_method":"modelopt","quant_algo":"FP8"})";

// The model in FP8, and the same numbers in float.
struct Model {
  Model(const Family& of_family, const Scales& of_scales)
      : family(of_family), scales(of_scales), spec(SpecOf(family, scales.config)) {
    const DecoderSpec float_spec = SpecOf(family, "");
    const auto source = SyntheticWeights(float_spec, DType::kF32);
    for (const std::string& name : source->Names()) {
      const TensorInfo& tensor = *source->Find(name);
      for (FakeWeights* weights : {&packed, &floats}) {
        weights->Add(name, DType::kF32, tensor.shape);
        std::ranges::copy(tensor.bytes, weights->Bytes(name).begin());
      }
    }
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (const char* module : {family.up, family.down}) Pack(Named(module, layer));
    }
  }

  static std::string Named(const char* module, int64_t layer) {
    return fmt::format(fmt::runtime(module), layer);
  }

  void Pack(const std::string& module) {
    const std::string name = module + family.ending;
    const std::vector<int64_t> shape = packed.Find(name)->shape;
    const int64_t rows = shape[1], cols = shape[2];
    const int64_t block_rows = scales.rows == 0 ? rows : scales.rows;
    const int64_t block_cols = scales.cols == 0 ? cols : scales.cols;
    const int64_t down = (rows + block_rows - 1) / block_rows;
    const int64_t across = (cols + block_cols - 1) / block_cols;
    const std::string scale_name = name + scales.ending;
    const int64_t experts = scales.of_all ? 1 : kExperts;
    packed.Add(scale_name, DType::kF32, {experts, down, across});
    packed.Remove(name);
    packed.Add(name, DType::kU8, shape);
    const auto levels = E4M3Levels();
    for (int64_t i = 0; i < kExperts * rows * cols; ++i) {
      const auto code = static_cast<uint8_t>(i * 37 & 0xbf);
      packed.Bytes(name)[i] = static_cast<std::byte>(code);
      const int64_t expert = scales.of_all ? 0 : i / (rows * cols);
      const int64_t row = i / cols % rows, col = i % cols;
      const int64_t at = (expert * down + row / block_rows) * across + col / block_cols;
      const float scale = 0.001f * static_cast<float>(1 + at % 7);
      packed.Set(scale_name, at, scale);
      floats.Set(name, i, scale * levels[code]);
    }
    packed.Retype(name, "F8_E4M3");
  }

  std::vector<float> Logits() const {
    return LogitsOf(*Load(spec, packed, {}, DType::kF32), kTokens);
  }
  std::vector<float> Expected() const {
    return LogitsOf(*Load(SpecOf(family, ""), floats, {}, DType::kF32), kTokens);
  }
  std::string Refusal() const {
    return ErrorOf(ErrorKind::kFormat, [&] { Load(spec, packed); });
  }

  const Family& family;
  Scales scales;
  DecoderSpec spec;
  FakeWeights packed, floats;
};

TEST(StackedFloats, StandForTheirNumbers) {
  for (const Family& family : kFamilies) {
    // A scale for each output: a column of the matrix where it is stored transposed.
    const Scales outputs{kFbgemm, "_scale", family.transposed ? 0 : 1, family.transposed ? 1 : 0};
    const Scales all[] = {{kBlocks, "_scale_inv", 8, 5},
                          {kWhole, "_scale_inv", 0, 0},
                          outputs,
                          {kModelOpt, "_scale", 0, 0, /*of_all=*/true}};
    for (const Scales& scales : all) {
      const Model model(family, scales);
      const auto logits = model.Logits();
      for (const float x : logits) ASSERT_TRUE(std::isfinite(x));
      EXPECT_EQ(logits, model.Expected()) << family.name << scales.config;
      EXPECT_TRUE(Load(model.spec, model.packed)->weight_types().mixed) << "bf16 beside f32";
    }
  }
}

// Gate and up were two tensors when they got their scales.
TEST(StackedFloats, HalvesHaveScalesOfTheirOwn) {
  Model model(kFamilies[0], {kWhole, "_scale_inv", 0, 0});
  for (int64_t layer = 0; layer < 2; ++layer) {
    const std::string name = Model::Named(kFamilies[0].up, layer) + ".weight";
    model.packed.Remove(name + "_scale_inv");
    model.packed.Add(name + "_scale_inv", DType::kBF16, {kExperts, 2, 1});
    for (int64_t half = 0; half < 2 * kExperts; ++half) {
      const float scale = std::ldexp(1.0f, -static_cast<int>(8 + half));
      model.packed.Set(name + "_scale_inv", half, scale);
      for (int64_t i = 0; i < kWidth * kHidden; ++i) {
        const int64_t at = half * kWidth * kHidden + i;
        const auto code = std::to_integer<size_t>(model.packed.Bytes(name)[at]);
        model.floats.Set(name, at, scale * E4M3Levels()[code]);
      }
    }
  }
  EXPECT_EQ(model.Logits(), model.Expected());
}

TEST(StackedFloats, RoundingIsTold) {
  const Model model(kFamilies[1], {kBlocks, "_scale_inv", 8, 5});
  EXPECT_THAT(RoundingsOf(ResolveTensors(model.spec, model.packed)),
              testing::ElementsAre(HasSubstr("FP8 weights, times their scales, to bf16")));
}

// Scales of inputs change nothing.
TEST(StackedFloats, ScalesOfInputsAreNotRead) {
  const Model plain(kFamilies[1], {kBlocks, "_scale_inv", 8, 5});
  Model more(kFamilies[1], {kBlocks, "_scale_inv", 8, 5});
  for (const char* ending : {"_activation_scale", "_input_scale"}) {
    more.packed.Add(Model::Named(kFamilies[1].up, 0) + ending, DType::kF32, {kExperts});
  }
  EXPECT_EQ(more.Logits(), plain.Logits());
}

TEST(StackedFloats, RefusesMissingAndMisshapenScales) {
  const std::string up = Model::Named(kFamilies[1].up, 1);
  Model missing(kFamilies[1], {kBlocks, "_scale_inv", 8, 5});
  missing.packed.Remove(up + "_scale_inv");
  EXPECT_THAT(missing.Refusal(), HasSubstr("missing tensor " + up +
                                           "_scale_inv, expected [3, 3, 5], for experts in FP8"));
  Model misshapen(kFamilies[1], {kBlocks, "_scale_inv", 8, 5});
  misshapen.packed.Remove(up + "_scale_inv");
  misshapen.packed.Add(up + "_scale_inv", DType::kF32, {3, 3, 4});
  const std::string down = Model::Named(kFamilies[1].down, 0);
  misshapen.packed.Remove(down);
  misshapen.packed.Add(down, DType::kU8, {3, 12, 19});
  misshapen.packed.Retype(down, "F8_E4M3");
  EXPECT_THAT(misshapen.Refusal(),
              AllOf(HasSubstr(up + "_scale_inv has shape [3, 3, 4], expected [3, 3, 5]"),
                    HasSubstr("down_proj has shape [3, 12, 19], expected [3, 12, 20]")));
  Model typed(kFamilies[0], {kWhole, "_scale_inv", 0, 0});
  const std::string name = Model::Named(kFamilies[0].down, 0) + ".weight";
  typed.packed.Retype(name + "_scale_inv", "F8_E8M0");
  EXPECT_THAT(typed.Refusal(), HasSubstr(name + "_scale_inv has type F8_E8M0, expected F32"));
  typed.packed.Retype(name, "F8_E5M2");
  EXPECT_THAT(typed.Refusal(), HasSubstr(name + " has type F8_E5M2"));
  Model nan(kFamilies[0], {kWhole, "_scale_inv", 0, 0});
  nan.packed.Bytes(name)[kWidth * kHidden + 5] = std::byte{0x7f};
  EXPECT_THAT(nan.Refusal(), HasSubstr("element 5 is not a number"));
}

}  // namespace
}  // namespace godwit::stacked_floats_test
