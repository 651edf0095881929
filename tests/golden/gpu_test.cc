// Families whose layers a GPU computes, against the logits of Hugging Face: on an emulated GPU, or
// with GODWIT_TEST_GPU=0 on GPU 0 of the machine.

#include "ops/gpu/gpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/test_support.h"
#include "model/gpu_plan.h"
#include "tests/golden/reference.h"
#include "tests/model_runner.h"

namespace godwit::golden_gpu_test {
namespace {

constexpr int64_t kStepRows = 64;

std::shared_ptr<ops::Gpu> NewGpu() {
  const char* const number = std::getenv("GODWIT_TEST_GPU");
  const std::string name = number == nullptr ? "emulated" : std::string("cuda:") + number;
  return ops::OpenGpu(*ops::ParseDevice(name), /*memory_bytes=*/0);
}

// A golden with weights of that type on a GPU.
ModelRunner OnGpu(const Golden& golden, DType weights) {
  const auto folder = GoldenRoot() / golden.path;
  ThreadPool pool(1);
  auto decoder = LoadDecoder(DescribeModel(HfConfig::Load(folder / "config.json")),
                             *OpenWeights(folder), pool, {}, weights);
  decoder->PlaceOn(NewGpu(), kStepRows, /*attends=*/true);
  EXPECT_EQ(decoder->gpu_plan()->layers, decoder->spec().layers);
  return ModelRunner(std::move(decoder));
}

// The goldens of families that GPUs compute, whose weights are bf16 as they are.
std::vector<Golden> GpuGoldens() {
  std::vector<Golden> goldens;
  for (const Golden& golden : FloatGoldens()) {
    if (golden.stored != "bfloat16") continue;
    try {
      RequireGpuLayers(DescribeModel(HfConfig::Load(GoldenRoot() / golden.path / "config.json")));
      goldens.push_back(golden);
    } catch (const Error&) {
      continue;  // another family
    }
  }
  return goldens;
}

// The error of all tokens, as Errors::rms has it. With experts, that of the token in the middle: a
// router's choices are not continuous, so rounding gives a few tokens other experts.
double UsualError(const DecoderSpec& spec, const std::vector<float>& logits,
                  const std::vector<float>& expected) {
  const Errors all = Compare(logits, expected);
  if (spec.mlp.experts == 0 || logits.size() != expected.size()) return all.rms;
  std::vector<double> errors;
  for (int64_t at = 0; at < std::ssize(logits); at += spec.vocab_size) {
    const auto row = [&](const std::vector<float>& of) {
      return std::vector<float>(of.begin() + at, of.begin() + at + spec.vocab_size);
    };
    errors.push_back(Compare(row(logits), row(expected)).rms);
  }
  const auto middle = errors.begin() + std::ssize(errors) / 2;
  std::ranges::nth_element(errors, middle);
  return *middle;
}

class GpuGoldenTest : public testing::TestWithParam<Golden> {
 protected:
  // The tokens as a context that the GPU reads.
  RunOptions ReadThere(DType kv_type) const {
    RunOptions options = run_;
    options.kv_type = kv_type;
    options.prefill = "gpu";
    return options;
  }

  const Reference reference_ = ReadReference(GoldenRoot() / GetParam().path / "golden.safetensors");
  const RunOptions run_{.context = GetParam().context};
};

// Rows are rounded to bf16 before each product, which the golden's are not. golden_test.cc has the
// reason of the bound.
TEST_P(GpuGoldenTest, HasTheLogitsOfHuggingFaceButForRounding) {
  const ModelRunner runner = OnGpu(GetParam(), DType::kBF16);
  constexpr double kAmplification = 8;
  const auto linears = static_cast<double>(4 * runner.spec().layers + 1);
  const double bound = kAmplification * std::sqrt(linears / 3) * std::ldexp(1, -9);
  const double error =
      UsualError(runner.spec(), runner.Logits(reference_.ids, run_), reference_.logits);
  EXPECT_LE(error, bound);
  RecordProperty("rms", fmt::format("{:.1e}", error));
  for (const DType kv_type : {DType::kF32, DType::kBF16}) {
    const double there = UsualError(
        runner.spec(), runner.Logits(reference_.ids, ReadThere(kv_type)), reference_.logits);
    EXPECT_LE(there, bound) << "attention on the GPU, " << Name(kv_type);
    RecordProperty("rms_" + std::string(Name(kv_type)), fmt::format("{:.1e}", there));
  }
}

// Beside the CPU with weights of 8 and 4 bits. Inputs are quantized in the same way on both.
TEST_P(GpuGoldenTest, RELEASE_IsCloseToTheCpuWithFewBits) {
  for (const DType weights : {DType::kI8, DType::kGrouped}) {
    const ModelRunner here(GoldenRoot() / GetParam().path, weights);
    const double error =
        UsualError(here.spec(), OnGpu(GetParam(), weights).Logits(reference_.ids, run_),
                   here.Logits(reference_.ids, run_));
    EXPECT_LE(error, 0.02) << Name(weights);
  }
}

TEST_P(GpuGoldenTest, RELEASE_HasTheSameBitsTokenByToken) {
  const ModelRunner runner = OnGpu(GetParam(), DType::kBF16);
  RunOptions one_by_one = run_;
  one_by_one.chunk = 1;
  EXPECT_EQ(runner.Logits(reference_.ids, one_by_one), runner.Logits(reference_.ids, run_));
  RunOptions there = ReadThere(DType::kBF16);
  const auto expected = runner.Logits(reference_.ids, there);
  there.chunk = 1;
  EXPECT_EQ(runner.Logits(reference_.ids, there), expected);
}

INSTANTIATE_TEST_SUITE_P(All, GpuGoldenTest, testing::ValuesIn(GpuGoldens()),
                         [](const auto& info) { return TestName(info.param.path); });

TEST(GpuGoldens, AreOfSeveralFamilies) {
  std::vector<std::string> families;
  for (const Golden& golden : GpuGoldens()) {
    if (families.empty() || families.back() != golden.family) families.push_back(golden.family);
  }
  for (const char* const family : {"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe",
                                   "gpt_oss", "glm4_moe", "gemma2", "gemma3_text", "olmo2"}) {
    EXPECT_NE(std::ranges::find(families, family), families.end()) << family;
  }
}

}  // namespace
}  // namespace godwit::golden_gpu_test
