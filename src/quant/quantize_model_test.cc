#include "quant/quantize_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "quant/look_at_layers.h"
#include "quant/quant_test_support.h"
#include "tensor/float_bytes.h"

namespace godwit::quant::quantize_model_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class QuantizeModelTest : public testing::Test {
 protected:
  Smoothing Quantize(const QuantizeOptions& options, const std::string& to) {
    const StageHooks hooks{.progress = [this](Stage stage, int64_t done, int64_t total) {
      EXPECT_LE(done, total);
      if (stages_.empty() || stages_.back() != stage) stages_.push_back(stage);
    }};
    return QuantizeModel(*TestExec(), model_, PlanModel(model_, options), options,
                         TestPieces(2, 16), place_.path() / to, hooks);
  }

  const ModelFolder model_{GODWIT_SOURCE_DIR "/tests/data/tiny-llama"};
  const TempFolder place_;
  std::vector<Stage> stages_;
};

TEST_F(QuantizeModelTest, MakesTheModelThatWasPlanned) {
  const QuantizeOptions options{.keep = {"*.down_proj"}};
  const ModelPlan plan = PlanModel(model_, options);
  EXPECT_LT(plan.after_bytes, plan.before_bytes);
  EXPECT_EQ(Quantize(options, "to").alphas.size(), plan.plan.smooth.groups.size());
  EXPECT_THAT(stages_, ElementsAre(Stage::kLoading, Stage::kCalibrating, Stage::kSmoothing,
                                   Stage::kWriting));

  const ModelFolder quantized((place_.path() / "to").string());
  EXPECT_TRUE(quantized.tensors().int8);
  int64_t bytes = 0;
  for (const std::string& name : quantized.weights().Names()) {
    bytes += std::ssize(quantized.weights().Find(name)->bytes);
  }
  EXPECT_EQ(bytes, plan.after_bytes);
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { (void)PlanModel(quantized, {}); }),
              HasSubstr("quantized already"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Quantize(options, "to"); }), HasSubstr("/to"));
}

TEST_F(QuantizeModelTest, RunsTheStepsThatTheSchemeNeeds) {
  EXPECT_TRUE(Quantize({.scheme = FindScheme("naive")}, "naive").alphas.empty());
  EXPECT_THAT(stages_, ElementsAre(Stage::kWriting));
  stages_.clear();
  Quantize({.scheme = FindScheme("o3"), .smooth = SmoothKind::kNone, .clip_share = 0.1}, "o3");
  EXPECT_THAT(stages_, ElementsAre(Stage::kLoading, Stage::kCalibrating, Stage::kFixedScales,
                                   Stage::kWriting));
}

TEST_F(QuantizeModelTest, OutlierSuppressionMovesGainsAndClips) {
  EXPECT_TRUE(Quantize({.scheme = FindScheme("outlier-suppression")}, "to").alphas.empty());
  EXPECT_THAT(stages_, ElementsAre(Stage::kLoading, Stage::kCalibrating, Stage::kSmoothing,
                                   Stage::kFixedScales, Stage::kWriting));
  const ModelFolder quantized((place_.path() / "to").string());
  const TensorInfo& gain = *quantized.weights().Find("model.layers.0.input_layernorm.weight");
  std::vector<float> gains(static_cast<size_t>(gain.NumElements()));
  ReadFloats(*gain.dtype, gain.bytes.data(), gains);
  EXPECT_THAT(gains, testing::Each(1.0f));
  EXPECT_NE(quantized.weights().Find("model.layers.0.self_attn.q_proj.input_scale"), nullptr);
}

TEST_F(QuantizeModelTest, FourBitsAreSearchedForAndMakeUpForOneAnother) {
  QuantizeOptions options{.scheme = FindScheme("w4a16")};
  options.scheme.group = 32;
  EXPECT_EQ(Quantize(options, "to").alphas.size(),
            PlanModel(model_, options).plan.smooth.groups.size());
  EXPECT_THAT(stages_, ElementsAre(Stage::kLoading, Stage::kCalibrating, Stage::kSmoothing,
                                   Stage::kRounding, Stage::kWriting));
  stages_.clear();
  options.compensates = false;
  options.smooth = SmoothKind::kNone;
  Quantize(options, "nearest");
  EXPECT_THAT(stages_, ElementsAre(Stage::kWriting));
}

TEST_F(QuantizeModelTest, GroupsThatDoNotFitAreRefusedWithThoseThatDo) {
  const auto message = [&](int64_t group) {
    QuantizeOptions options{.scheme = FindScheme("w4a8")};
    options.scheme.group = group;
    return ErrorOf(ErrorKind::kInput, [&] { PlanModel(model_, options); });
  };
  EXPECT_THAT(message(100),
              HasSubstr("which is no multiple of the group size 100: try --group-size "));
}

TEST_F(QuantizeModelTest, LooksAtTheLayersThatWereChosen) {
  const SmoothOptions alpha{.alpha = 0.5f};
  const auto layers = PlanLook(model_, "0", SmoothKind::kNorm, alpha);
  const auto seen = LookAtLayers(*TestExec(), model_, layers, alpha, TestPieces(2, 16), {});
  ASSERT_EQ(seen.linears.size(), layers.chosen.linears.size());
  for (const LinearMaxima& linear : seen.linears) {
    EXPECT_EQ(linear.before.inputs.size(), linear.before.weights.size()) << linear.name;
    const bool behind_a_norm = linear.name.find("o_proj") == linear.name.npos &&
                               linear.name.find("down_proj") == linear.name.npos;
    EXPECT_EQ(linear.after.has_value(), behind_a_norm) << linear.name;
  }
  EXPECT_TRUE(
      PlanLook(model_, "0", SmoothKind::kNorm, {.search = AlphaSearch::kGlobal}).whole_model);
}

}  // namespace
}  // namespace godwit::quant::quantize_model_test
