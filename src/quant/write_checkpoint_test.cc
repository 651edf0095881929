#include "quant/write_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/json.h"
#include "base/test_folder.h"
#include "quant/linear_layers.h"
#include "quant/quant_test_support.h"
#include "quant/quantize_matrix.h"
#include "quant/smooth.h"
#include "tensor/float_bytes.h"
#include "weights/open_weights.h"

namespace godwit::quant::write_checkpoint_test {
namespace {

namespace fs = std::filesystem;

std::vector<float> Floats(const TensorInfo& tensor) {
  std::vector<float> values(tensor.NumElements());
  ReadFloats(*tensor.dtype, tensor.bytes.data(), values);
  return values;
}

// A model in a folder, quantized by a scheme into another folder.
class WriteTest : public testing::TestWithParam<DType> {
 protected:
  WriteTest() {
    place_.Write("from/config.json", R"({"z":1,"model_type":"llama","a":1e-05})");
    place_.Write("from/tokenizer.json", "{}");
    place_.Write("from/pytorch_model.bin", "float weights in another format");
  }

  fs::path Quantize(const std::string& scheme, const std::string& to, int threads = 2,
                    const std::vector<std::string>& keep = {},
                    int64_t max_shard_bytes = SafetensorsWriter::kMaxShardBytes) {
    return Quantize(FindScheme(scheme), to, threads, keep, max_shard_bytes);
  }

  fs::path Quantize(const Scheme& scheme, const std::string& to, int threads,
                    const std::vector<std::string>& keep, int64_t max_shard_bytes,
                    const GroupedMatrices& rounded = {}) {
    const TestExec exec(threads);
    plan_ = PlanQuantization(model_.spec, model_.tensors, SmoothKind::kAll, keep);
    const auto calibration =
        Calibrate(*exec, *Load(model_.spec, model_.weights), TestPieces(3, 20), nullptr);
    smoothing_ = Smooth(*exec, plan_, scheme, calibration, {}, nullptr);
    const InputMaxima maxima = StaticMaxima(plan_, calibration, smoothing_.scalings);
    const fs::path from = place_.path() / "from";
    fs::create_directory(place_.path() / to);
    WriteCheckpoint(*exec,
                    {.from = from,
                     .source = model_.weights,
                     .plan = plan_,
                     .scheme = scheme,
                     .scalings = smoothing_.scalings,
                     .input_maxima = maxima,
                     .rounded = rounded,
                     .max_shard_bytes = max_shard_bytes},
                    place_.path() / to, nullptr);
    return place_.path() / to;
  }

  // The float model that the checkpoint represents: integers times scales.
  std::unique_ptr<WeightSource> Dequantized(const WeightSource& source) const {
    auto weights = std::make_unique<FakeWeights>();
    for (const std::string& name : model_.weights.Names()) {
      const TensorInfo& tensor = *source.Find(name);
      weights->Add(name, DType::kF32, tensor.shape);
      if (tensor.dtype != DType::kI8) {
        const auto values = Floats(tensor);
        for (int64_t i = 0; i < tensor.NumElements(); ++i) {
          weights->Set(name, i, values[i]);
        }
        continue;
      }
      const auto scales = Floats(*source.Find(name + "_scale"));
      for (int64_t i = 0; i < tensor.NumElements(); ++i) {
        const auto row = static_cast<size_t>(scales.size() == 1 ? 0 : i / tensor.shape[1]);
        const auto integer = static_cast<int8_t>(tensor.bytes[i]);
        weights->Set(name, i, scales[row] * static_cast<float>(integer));
      }
    }
    return weights;
  }

  const TempFolder place_;
  TestModel model_{SmallLlama(), GetParam()};
  QuantPlan plan_;
  Smoothing smoothing_;
};

TEST_P(WriteTest, IsTheSameModelButForRounding) {
  const auto expected = LogitsOf(*Load(model_.spec, model_.weights), TestPieces(1, 20)[0]);
  for (const char* scheme : {"w8a8", "o1", "o3", "zeroquant"}) {
    const auto source = OpenWeights(Quantize(scheme, scheme));
    const auto logits = LogitsOf(*Load(model_.spec, *Dequantized(*source)), TestPieces(1, 20)[0]);
    double difference = 0, size = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
      difference += std::pow(logits[i] - expected[i], 2);
      size += std::pow(expected[i], 2);
    }
    // A weight is off by a third of a hundredth on average, in nine layers one after another.
    EXPECT_LT(std::sqrt(difference / size), 0.05) << scheme;
    EXPECT_GT(difference, 0) << scheme;
  }
}

TEST_P(WriteTest, TensorsAreThoseOfTheFormat) {
  const DType stored = ScaleType(GetParam());
  const auto source = OpenWeights(Quantize("w8a8", "to"));
  const std::string k = "model.layers.1.self_attn.k_proj";
  EXPECT_EQ(source->Find(k + ".weight")->Describe(), "I8 [8, 16]");
  EXPECT_EQ(source->Find(k + ".weight_scale")->Describe(), fmt::format("{} [8, 1]", Name(stored)));
  EXPECT_EQ(source->Find(k + ".input_scale"), nullptr);
  for (const char* name : {"lm_head.weight", "model.layers.1.self_attn.k_proj.bias",
                           "model.layers.0.input_layernorm.weight"}) {
    EXPECT_EQ(source->Find(name)->Describe(), model_.weights.Find(name)->Describe());
  }
  EXPECT_EQ(source->Names().size(), model_.weights.Names().size() + 14);

  // The integers are those of the smoothed weight by the stored scale.
  const TensorInfo& old = *model_.weights.Find(k + ".weight");
  const auto scales = Floats(*source->Find(k + ".weight_scale"));
  std::vector<float> row(16);
  for (int64_t i = 0; i < 8; ++i) {
    ReadRow(WholeTensor(old), smoothing_.scalings.at(k + ".weight"), i, row);
    for (int64_t j = 0; j < 16; ++j) {
      EXPECT_EQ(static_cast<int8_t>(source->Find(k + ".weight")->bytes[i * 16 + j]),
                ToInt8(row[j], scales[i]));
    }
  }
}

// Groups of at most 16 outputs, and one group for a whole tensor.
TEST_P(WriteTest, GroupsAreChannelsWhoseScalesRepeat) {
  const auto source = OpenWeights(Quantize("zeroquant", "to"));
  const auto scale = [&](const std::string& module, size_t outputs) {
    const auto scales = Floats(*source->Find("model.layers.0." + module + ".weight_scale"));
    EXPECT_EQ(scales, std::vector<float>(outputs, scales[0])) << module;
    return scales[0];
  };
  EXPECT_EQ(source->Find("model.layers.0.mlp.up_proj.weight_scale")->shape,
            (std::vector<int64_t>{10, 1}));
  EXPECT_NE(scale("mlp.up_proj", 10), scale("mlp.gate_proj", 10));
  EXPECT_NE(scale("self_attn.q_proj", 16), scale("self_attn.k_proj", 8));
}

TEST_P(WriteTest, LlmInt8IsAsBitsandbytesHasIt) {
  const fs::path to = Quantize("llm-int8", "to", 2, {"*.down_proj"});
  const auto source = OpenWeights(to);
  const std::string k = "model.layers.1.self_attn.k_proj";
  EXPECT_EQ(source->Find(k + ".weight")->Describe(), "I8 [8, 16]");
  EXPECT_EQ(source->Find(k + ".weight_format")->Describe(), "U8 []");
  EXPECT_EQ(source->Find(k + ".weight_format")->bytes[0], std::byte{0});
  EXPECT_EQ(source->Find(k + ".weight_scale"), nullptr);
  const auto maxima = Floats(*source->Find(k + ".SCB"));
  ASSERT_EQ(maxima.size(), 8u);
  std::vector<float> row(16);
  for (size_t i = 0; i < maxima.size(); ++i) {
    ReadRow(WholeTensor(*model_.weights.Find(k + ".weight")), smoothing_.scalings.at(k + ".weight"),
            static_cast<int64_t>(i), row);
    float largest = 0;
    for (const float x : row) largest = std::max(largest, std::fabs(x));
    EXPECT_FLOAT_EQ(maxima[i], largest);
  }

  DecoderSpec spec = model_.spec;
  spec.quantization = QuantizationConfig::Read(HfConfig::Load(to / "config.json"), "lm_head");
  ASSERT_EQ(spec.quantization.Distinct().size(), 1u);
  EXPECT_EQ(spec.quantization.Distinct()[0].input.outlier_threshold, 6);
  const auto logits = LogitsOf(*Load(spec, *source), TestPieces(1, 20)[0]);
  const auto expected = LogitsOf(*Load(model_.spec, model_.weights), TestPieces(1, 20)[0]);
  for (size_t i = 0; i < logits.size(); ++i) EXPECT_NEAR(logits[i], expected[i], 0.2);
  EXPECT_NE(logits, expected);
}

// Groups have 8 inputs, because the model is that small. Half of the weights come from elsewhere.
TEST_P(WriteTest, FourBitsAreThoseOfTheirFormat) {
  const std::string module = "model.layers.1.self_attn.k_proj", name = module + ".weight";
  GroupedMatrix matrix{.rows = 8, .columns = 16, .group = 8};
  matrix.packed.assign(8 * 8, std::byte{0x9f});  // 7 and 1
  matrix.scales.assign(8 * 2, 0.5f);
  for (const char* of : {"w4a8", "w4a16"}) {
    Scheme scheme = FindScheme(of);
    scheme.group = 8;
    const auto source = OpenWeights(Quantize(scheme, of, 2, {"*.down_proj"},
                                             SafetensorsWriter::kMaxShardBytes, {{name, matrix}}));
    EXPECT_EQ(source->Find(name + "_scale")->Describe(),
              fmt::format("{} [8, 2]", Name(ScaleType(GetParam()))));
    EXPECT_EQ(Floats(*source->Find(name + "_scale")), std::vector<float>(16, 0.5f));
    const std::string other = "model.layers.0.self_attn.k_proj.weight";
    const auto scales = Floats(*source->Find(other + "_scale"));
    std::vector<float> row(16);
    ReadRow(WholeTensor(*model_.weights.Find(other)), FindScaling(smoothing_.scalings, other), 3,
            row);
    const int8_t want = ToInt4(row[9], scales[3 * 2 + 1]);
    if (scheme.weights_alone) {
      EXPECT_EQ(source->Find(name), nullptr);
      EXPECT_EQ(source->Find(name + "_packed")->Describe(), "I32 [8, 2]");
      EXPECT_TRUE(std::ranges::equal(source->Find(name + "_packed")->bytes, matrix.packed));
      int64_t shape[2];
      std::memcpy(shape, source->Find(name + "_shape")->bytes.data(), sizeof(shape));
      EXPECT_THAT(shape, testing::ElementsAre(8, 16));
      const auto byte = static_cast<int>(source->Find(other + "_packed")->bytes[3 * 8 + 4]);
      EXPECT_EQ((byte >> 4) - 8, want);
    } else {
      EXPECT_EQ(source->Find(name)->Describe(), "I8 [8, 16]");
      EXPECT_EQ(source->Find(name)->bytes[0], std::byte{7});
      EXPECT_EQ(source->Find(name)->bytes[15], std::byte{1});
      EXPECT_EQ(static_cast<int8_t>(source->Find(other)->bytes[3 * 16 + 9]), want);
    }
  }
}

TEST_P(WriteTest, StaticScalesAreSharedByWhatIsFused) {
  const auto source = OpenWeights(Quantize("o3", "to"));
  const std::string layer = "model.layers.0.";
  const auto scale = [&](const std::string& module) {
    const TensorInfo* tensor = source->Find(layer + module + ".input_scale");
    EXPECT_EQ(tensor->Describe(), fmt::format("{} [1]", Name(ScaleType(GetParam()))));
    return Floats(*tensor)[0];
  };
  EXPECT_EQ(source->Find(layer + "self_attn.q_proj.weight_scale")->shape, std::vector<int64_t>{1});
  EXPECT_GT(scale("self_attn.q_proj"), 0);
  EXPECT_EQ(scale("self_attn.q_proj"), scale("self_attn.k_proj"));
  EXPECT_EQ(scale("self_attn.q_proj"), scale("self_attn.v_proj"));
  EXPECT_EQ(scale("mlp.gate_proj"), scale("mlp.up_proj"));
  EXPECT_NE(scale("mlp.gate_proj"), scale("mlp.down_proj"));
}

TEST_P(WriteTest, KeptLayersAreSmoothedFloats) {
  const auto source = OpenWeights(Quantize("w8a8", "to", 2, {"*.down_proj"}));
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  EXPECT_EQ(source->Find("model.layers.0.mlp.down_proj.weight")->dtype, GetParam());
  EXPECT_EQ(source->Find("model.layers.0.mlp.down_proj.weight_scale"), nullptr);
  EXPECT_EQ(source->Find(name)->dtype, DType::kI8);
}

TEST_P(WriteTest, ConfigKeepsItsOrderAndOtherFilesAreCopied) {
  const fs::path to = Quantize("w8a8", "to", 2, {"*.down_proj"});
  const std::string text = ReadTextFile(to / "config.json", 100000);
  EXPECT_THAT(text, testing::StartsWith("{\n  \"z\": 1,\n  \"model_type\": \"llama\",\n"
                                        "  \"a\": 1e-05,\n  \"quantization_config\": {\n"));
  EXPECT_EQ(ParseJson(text, "")["quantization_config"]["ignore"],
            (std::vector<std::string>{"model.layers.0.mlp.down_proj",
                                      "model.layers.1.mlp.down_proj", "lm_head"}));
  EXPECT_TRUE(fs::exists(to / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(to / "pytorch_model.bin"));
}

TEST_P(WriteTest, SameBytesWhateverTheThreads) {
  const fs::path one = Quantize("o3", "one", 1), three = Quantize("o3", "three", 3);
  EXPECT_EQ(ReadTextFile(one / "model.safetensors", 1 << 20),
            ReadTextFile(three / "model.safetensors", 1 << 20));
}

TEST_P(WriteTest, ShardsHoldTheSameTensors) {
  const auto whole = OpenWeights(Quantize("w8a8", "whole"));
  const fs::path folder = Quantize("w8a8", "shards", 2, {}, /*max_shard_bytes=*/1000);
  EXPECT_FALSE(fs::exists(folder / "model.safetensors"));
  const auto shards = OpenWeights(folder);
  EXPECT_EQ(shards->Names().size(), whole->Names().size());
  for (const std::string& name : whole->Names()) {
    EXPECT_TRUE(std::ranges::equal(whole->Find(name)->bytes, shards->Find(name)->bytes)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, WriteTest, testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace godwit::quant::write_checkpoint_test
