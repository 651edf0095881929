// Smoothing by any factors keeps the function of every family and variant.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/json.h"
#include "base/test_support.h"
#include "model/model_test_support.h"
#include "quant/scaled_tensor.h"
#include "weights/hf_config.h"
#include "weights/open_weights.h"

namespace godwit::quant::smooth_goldens_test {
namespace {

std::filesystem::path Root() { return GODWIT_SOURCE_DIR "/tests/golden"; }

std::vector<std::string> AllGoldens() {
  std::vector<std::string> paths;
  const auto text = ReadTextFile(Root() / "index.json", 1 << 20);
  for (const auto& entry : ParseJson(text, "index.json")) paths.push_back(entry["path"]);
  return paths;
}

// The float tensors, scaled, and widened to f32: rounding to a narrow type is not the question. The
// tensors of all experts become one for each matrix.
std::unique_ptr<WeightSource> Scaled(const WeightSource& source, const ModelTensors& tensors,
                                     const Scalings& scalings) {
  auto scaled = std::make_unique<FakeWeights>();
  const auto unstacked = UnstackedTensors(tensors);
  const auto add = [&](const MatrixPart& part, const std::vector<int64_t>& shape) {
    scaled->Add(part.name, DType::kF32, shape);
    std::vector<float> row(part.columns);
    std::byte* out = scaled->Bytes(part.name).data();
    for (int64_t i = 0; i < part.rows; ++i) {
      ReadRow(part, FindScaling(scalings, part.name), i, row);
      std::memcpy(out, row.data(), row.size() * sizeof(float));
      out += row.size() * sizeof(float);
    }
  };
  for (const std::string& name : source.Names()) {
    const TensorInfo& tensor = *source.Find(name);
    if (const auto found = unstacked.find(name); found != unstacked.end()) {
      for (const MatrixPart& part : found->second) add(part, part.shape());
    } else if (tensor.dtype && tensor.shape.size() <= 4) {
      add(WholeTensor(tensor), tensor.shape);
    }
  }
  return scaled;
}

class SmoothGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(SmoothGoldenTest, RELEASE_SmoothedModelIsTheSameFunction) {
  const auto folder = Root() / GetParam();
  const DecoderSpec spec = DescribeModel(HfConfig::Load(folder / "config.json"));
  const auto source = OpenWeights(folder);
  const ModelTensors tensors = ResolveTensors(spec, *source);

  const SmoothGroups groups = FindSmoothGroups(spec, tensors, SmoothKind::kAll);
  EXPECT_FALSE(groups.groups.empty() && groups.left_out.empty());
  Scalings scalings;
  for (const SmoothGroup& group : groups.groups) {
    std::vector<float> s;
    for (int64_t i = 0; i < group.channels; ++i) {
      const auto draw = static_cast<uint64_t>(&group - groups.groups.data());
      s.push_back(static_cast<float>(std::exp2(6 * Uniform(1, draw, i, 0) - 3)));  // 1/8 to 8
    }
    AddGroup(group, s, scalings);
  }

  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 24; ++i) tokens.push_back(i * 7 % static_cast<int32_t>(spec.vocab_size));
  const auto expected = LogitsOf(*Load(spec, *source, {}, DType::kF32), tokens);
  const auto smoothed = LogitsOf(*Load(spec, *Scaled(*source, tensors, scalings)), tokens);
  float largest = 0, difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    difference = std::max(difference, std::fabs(smoothed[i] - expected[i]));
  }
  // The bound is the effect of f32 rounding on these models, as in golden_test.cc.
  EXPECT_LE(difference, 5e-5f * largest);
  EXPECT_TRUE(groups.groups.empty() || difference > 0) << "nothing was smoothed";
}

INSTANTIATE_TEST_SUITE_P(All, SmoothGoldenTest, testing::ValuesIn(AllGoldens()),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace godwit::quant::smooth_goldens_test
