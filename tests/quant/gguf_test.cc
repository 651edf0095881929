// Folders in transformers' form that are written from GGUF files, with the files' numbers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "checkpoint/hf_files.h"
#include "quant/calibrate.h"
#include "quant/quant_test_support.h"
#include "quant/quantize_model.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"
#include "weights/tensor_rows.h"

namespace godwit::quant::gguf_test {
namespace {

class GgufTest : public testing::TestWithParam<std::string> {
 protected:
  std::vector<float> Logits(const DecoderSpec& spec, const WeightSource& weights,
                            std::optional<DType> storage) const {
    const ModelRunner runner(spec, weights, storage);
    return runner.Logits(reference_.ids, {.context = reference_.context});
  }

  // The numbers of the file in f32, those of blocks rounded to bf16.
  std::unique_ptr<FakeWeights> Numbers() const {
    auto numbers = std::make_unique<FakeWeights>();
    for (const std::string& name : model_.weights().Names()) {
      const TensorInfo& tensor = *model_.weights().Find(name);
      std::vector<float> values = ReadAllRows(tensor);
      if (tensor.blocks != nullptr) {
        for (float& value : values) value = ToFloat(ToBF16(value));
      }
      numbers->Add(name, DType::kF32, tensor.shape);
      std::memcpy(numbers->Bytes(name).data(), values.data(), values.size() * sizeof(float));
    }
    return numbers;
  }

  ModelFolder Write(const QuantizeOptions& options) const {
    const std::vector<std::vector<int32_t>> pieces(2, reference_.ids);
    const auto to = place_.path() / "to";
    QuantizeModel(*TestExec(), model_, PlanModel(model_, options), options, pieces, to, {});
    return ModelFolder(to.string());
  }

  const TempFolder place_;
  const ModelFolder model_{GgufGoldenFile(GetParam()).string()};
  const Reference reference_ = ReadReference(GoldenRoot() / "gguf" / (GetParam() + ".safetensors"));
};

// All layers stay in float.
TEST_P(GgufTest, InFloatItIsTheSameModel) {
  if (LiesOtherwiseInGguf(GetParam())) {
    EXPECT_THAT(
        ErrorOf(ErrorKind::kUnsupported, [&] { Write({.scheme = FindScheme("zeroquant")}); }),
        testing::HasSubstr("recurrent layers"));
    return;
  }
  const ModelFolder written = Write({.scheme = FindScheme("zeroquant"), .keep = {"*"}});
  EXPECT_FALSE(written.is_gguf());
  EXPECT_EQ(written.spec().family, model_.spec().family);
  EXPECT_THAT(written.spec().warnings, testing::IsEmpty());
  EXPECT_TRUE(written.config().Has("architectures"));
  EXPECT_FALSE(written.config().Has("norm_gain_offset")) << "transformers has no such field";
  const auto logits = Logits(written.spec(), written.weights(), DType::kF32);
  const auto expected = Logits(model_.spec(), *Numbers(), DType::kF32);
  // LongRoPE's attention factor follows from the lengths here, and is f32 in the file.
  const bool to_the_bit = !written.config().Has("original_max_position_embeddings");
  EXPECT_LE(Compare(logits, expected).rms, to_the_bit ? 0 : 1e-6);
}

// Calibrated, smoothed and rounded; measured: 8.3 % in the worst.
TEST_P(GgufTest, RELEASE_SmoothedAndInInt8ItIsNearby) {
  if (LiesOtherwiseInGguf(GetParam())) GTEST_SKIP() << "no folder can be written";
  const ModelFolder written = Write({.smooth = SmoothKind::kAll});
  EXPECT_EQ(LoadedTypes(written.tensors(), std::nullopt).layers, DType::kI8);
  if (model_.spec().mlp.experts > 0) return;
  const double rms =
      Compare(Logits(written.spec(), written.weights(), std::nullopt), reference_.logits).rms;
  RecordProperty("rms", fmt::format("{:.1e}", rms));
  EXPECT_GT(rms, 1e-4);
  EXPECT_LE(rms, 0.1);
}

INSTANTIATE_TEST_SUITE_P(All, GgufTest, testing::ValuesIn(GgufGoldens()),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace godwit::quant::gguf_test
