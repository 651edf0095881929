// What is written of GGUF files: folders as transformers has them, with the numbers of the files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

namespace godwit::quant::gguf_test {
namespace {

class GgufTest : public testing::TestWithParam<std::string> {
 protected:
  std::vector<float> Logits(const ModelFolder& model, std::optional<DType> weights) const {
    const ModelRunner runner(model.spec(), model.weights(), weights);
    return runner.Logits(reference_.ids, {.context = reference_.context});
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

// Nothing is quantized: blocks become the bf16 that they are loaded as where that is asked for.
TEST_P(GgufTest, InFloatItIsTheSameModelToTheBit) {
  const ModelFolder written = Write({.scheme = FindScheme("zeroquant"), .keep = {"*"}});
  EXPECT_FALSE(written.is_gguf());
  EXPECT_EQ(written.spec().family, model_.spec().family);
  EXPECT_THAT(written.spec().warnings, testing::IsEmpty());
  EXPECT_TRUE(written.config().Has("architectures"));
  EXPECT_FALSE(written.config().Has("norm_gain_offset")) << "transformers has no such field";
  EXPECT_EQ(Logits(written, DType::kBF16), Logits(model_, DType::kBF16));
}

// Calibrated, smoothed and rounded; measured: 4 % in the worst.
TEST_P(GgufTest, SmoothedAndInInt8ItIsNearby) {
  const ModelFolder written = Write({.smooth = SmoothKind::kAll});
  EXPECT_EQ(LoadedTypes(written.tensors(), std::nullopt).layers, DType::kI8);
  if (model_.spec().mlp.experts > 0) return;
  const double rms = Compare(Logits(written, std::nullopt), reference_.logits).rms;
  RecordProperty("rms", fmt::format("{:.1e}", rms));
  EXPECT_GT(rms, 1e-4);
  EXPECT_LE(rms, 0.1);
}

INSTANTIATE_TEST_SUITE_P(All, GgufTest, testing::ValuesIn(GgufGoldens()),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace godwit::quant::gguf_test
