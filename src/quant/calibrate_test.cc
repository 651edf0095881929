#include "quant/calibrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "ops/linear_rows.h"
#include "quant/output_error.h"
#include "quant/quant_test_support.h"
#include "quant/static_scales.h"
#include "tensor/float_bytes.h"

namespace godwit::quant::calibrate_test {
namespace {

const std::string kQkv = "model.layers.0.self_attn.q_proj";
const std::string kDown = "model.layers.1.mlp.down_proj";

// Every row that enters the layer `name`, as the model computes it.
std::vector<std::vector<float>> RowsInto(const std::string& name, const Decoder& decoder,
                                         const std::vector<std::vector<int32_t>>& pieces) {
  std::vector<std::vector<float>> rows;
  const LinearObserver observer = [&](const Weight& w, const ops::LinearRows& x) {
    if (w.name != name) return;
    for (int64_t i = 0; i < x.rows; ++i) {
      rows.emplace_back(static_cast<size_t>(x.cols));
      ReadFloats(x.dtype, x.Row(i), rows.back());
    }
  };
  const TestExec exec;
  Exec observed = *exec;
  observed.observer = &observer;
  for (const auto& piece : pieces) {
    const auto text = DenseText(decoder.spec());
    std::vector<float> hidden(piece.size() * static_cast<size_t>(decoder.hidden_size()));
    const Segment segment{piece, text.get()};
    decoder.Forward(
        observed, {&segment, 1},
        {hidden.data(), std::ssize(piece), decoder.hidden_size(), decoder.hidden_size()});
  }
  return rows;
}

class CalibrateTest : public testing::TestWithParam<DType> {
 protected:
  Calibration Run(int threads = 2) {
    return Calibrate(*TestExec(threads), *decoder_, pieces_, nullptr);
  }

  TestModel model_{SmallLlama(), GetParam()};
  std::unique_ptr<Decoder> decoder_ = Load(model_.spec, model_.weights);
  std::vector<std::vector<int32_t>> pieces_ = TestPieces(3, 20);
};

TEST_P(CalibrateTest, FindsTheLargestInputOfEveryChannel) {
  const Calibration calibration = Run();
  EXPECT_EQ(calibration.size(), 8);  // every linear layer, and not the head
  for (const std::string& name : {kQkv, kDown}) {
    const auto rows = RowsInto(name, *decoder_, pieces_);
    EXPECT_EQ(rows.size(), 60);
    std::vector<float> largest(rows[0].size());
    for (const auto& row : rows) {
      for (size_t i = 0; i < row.size(); ++i) largest[i] = std::max(largest[i], std::fabs(row[i]));
    }
    const LinearStatistics& seen = calibration.at(name);
    EXPECT_EQ(seen.largest, largest);
    ASSERT_EQ(seen.sample.rows().rows, 60);
    for (int64_t i = 0; i < 60; ++i) {
      EXPECT_TRUE(std::ranges::equal(seen.sample.rows().RowSpan(i), rows[i]));
    }
  }
}

TEST_P(CalibrateTest, SameBitsWhateverTheThreads) {
  const Calibration one = Run(1), three = Run(3);
  for (const auto& [name, seen] : one) EXPECT_EQ(seen.largest, three.at(name).largest) << name;
}

INSTANTIATE_TEST_SUITE_P(Types, CalibrateTest, testing::Values(DType::kF32, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

TEST(Calibrate, TellsProgress) {
  const TestModel model;
  std::vector<std::pair<int64_t, int64_t>> seen;
  Calibrate(*TestExec(), *Load(model.spec, model.weights), TestPieces(2, 5),
            [&](int64_t done, int64_t total) { seen.emplace_back(done, total); });
  EXPECT_EQ(seen, (std::vector<std::pair<int64_t, int64_t>>{{5, 10}, {10, 10}}));
}

TEST(Calibrate, KeepsWhatItIsAskedFor) {
  const TestModel model;
  const auto decoder = Load(model.spec, model.weights);
  const auto pieces = TestPieces(2, 5);
  const Calibration all = Calibrate(*TestExec(), *decoder, pieces, nullptr);
  const Calibration some = Calibrate(*TestExec(), *decoder, pieces, nullptr,
                                     {.linears = {{kDown, kQkv}}, .samples = false});
  EXPECT_EQ(some.size(), 2);
  for (const auto& [name, seen] : some) {
    EXPECT_EQ(seen.largest, all.at(name).largest);
    EXPECT_EQ(seen.sample.rows().rows, 0);
  }
}

TEST(Calibrate, NonFiniteInputIsRefusedByName) {
  TestModel model;
  const float infinity = std::numeric_limits<float>::infinity();
  model.weights.Set("model.layers.1.input_layernorm.weight", 3, infinity);
  const auto decoder = Load(model.spec, model.weights);
  EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                      [&] { Calibrate(*TestExec(), *decoder, TestPieces(1, 5), nullptr); }),
              testing::HasSubstr("the input of model.layers.1.self_attn.q_proj holds NaN"));
}

TEST(ClippedMaxima, CutsTheLargestTokens) {
  const TestModel model;
  const auto decoder = Load(model.spec, model.weights);
  const auto pieces = TestPieces(3, 20);
  std::vector<float> maxima;  // of every token
  for (const auto& row : RowsInto(kDown, *decoder, pieces)) {
    float largest = 0;
    for (const float x : row) largest = std::max(largest, std::fabs(x) / 2);
    maxima.push_back(largest);
  }
  std::ranges::sort(maxima);
  const Scalings twice = {{kDown + ".weight", {.column_factors = std::vector<float>(10, 2.0f)}}};
  const std::vector<const LinearTensors*> linears = {&model.tensors.layers[1].mlp.down};
  const auto clipped = [&](double share) {
    return ClippedMaxima(*TestExec(), *decoder, pieces, linears, twice, {{share}}, nullptr)
        .at(kDown)
        .front();
  };
  EXPECT_EQ(clipped(0), maxima[59]);
  EXPECT_EQ(clipped(0.05), maxima[56]);  // three of sixty lie beyond it
  EXPECT_EQ(clipped(0.5), maxima[29]);
  EXPECT_EQ(
      ClippedMaxima(*TestExec(), *decoder, pieces, linears, twice, {{0.5, 0.0}}, nullptr).at(kDown),
      (std::vector<float>{maxima[29], maxima[59]}));
  // Factors may be negative, as the gains of norms are.
  const Scalings less = {{kDown + ".weight", {.column_factors = std::vector<float>(10, -2.0f)}}};
  EXPECT_EQ(ClippedMaxima(*TestExec(), *decoder, pieces, linears, less, {{0.0}}, nullptr)
                .at(kDown)
                .front(),
            maxima[59]);
}

// The definition of token-wise clipping, layer by layer: the magnitude at which x is cut and
// rounded to 127 steps, beside the outputs of float.
TEST(BestClipping, MovesTheOutputsLeast) {
  const TestModel model;
  const auto decoder = Load(model.spec, model.weights);
  const auto pieces = TestPieces(3, 40);
  const auto plan = PlanQuantization(model.spec, model.tensors, SmoothKind::kNone, {});
  Calibration calibration = Calibrate(*TestExec(), *decoder, pieces, nullptr);
  // One token of kDown is far larger than the others, and little depends on it.
  RowSample sample(64);
  const auto before = calibration.at(kDown).sample.rows();
  for (int64_t row = 0; row < std::min<int64_t>(before.rows, 40); ++row) {
    std::vector<float> values(before.RowSpan(row).begin(), before.RowSpan(row).end());
    (void)sample.WantsNext();
    sample.Add(values);
  }
  calibration.at(kDown).sample = sample;
  const float usual = std::ranges::max(calibration.at(kDown).largest);
  std::map<std::string, std::vector<float>, std::less<>> clipped;
  for (const LinearTensors* linear : plan.linears) clipped[ModuleName(*linear)] = {usual, usual};
  clipped[kDown] = {1000 * usual, usual, 0.05f * usual};
  const Scheme& scheme = FindScheme("outlier-suppression");
  const auto best = BestClipping(*TestExec(), plan, scheme, calibration, {}, clipped);
  EXPECT_EQ(best.at(kDown), usual);

  // The errors by the formula, for the weights as they are stored.
  const LinearTensors& down = model.tensors.layers[1].mlp.down;
  std::vector<double> errors;
  for (const float largest : clipped[kDown]) {
    errors.push_back(LinearOutputError(*TestExec(), down, calibration.at(kDown).sample.rows(), {},
                                       scheme, largest)
                         .difference);
  }
  EXPECT_EQ(std::ranges::min_element(errors) - errors.begin(), 1);
  calibration.erase(kDown);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput,
                      [&] { BestClipping(*TestExec(), plan, scheme, calibration, {}, clipped); }),
              testing::HasSubstr("no token of the calibration text reaches " + kDown));
  EXPECT_EQ(ClipGrid().size(), 11);
  EXPECT_EQ(ClipGrid()[2], 0.02);
}

TEST(StaticMaxima, AreTheLargestSmoothedInputs) {
  const TestModel model;
  const auto decoder = Load(model.spec, model.weights);
  const auto calibration = Calibrate(*TestExec(), *decoder, TestPieces(3, 20), nullptr);
  const auto plan = PlanQuantization(model.spec, model.tensors, SmoothKind::kNone, {});
  const Scalings twice = {{kDown + ".weight", {.column_factors = std::vector<float>(10, 2.0f)}}};
  EXPECT_EQ(StaticMaxima(plan, calibration, twice).at(kDown),
            std::ranges::max(calibration.at(kDown).largest) / 2);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { StaticMaxima(plan, {}, {}); }),
              testing::HasSubstr("no token of the calibration text reaches " + kQkv));
}

}  // namespace
}  // namespace godwit::quant::calibrate_test
