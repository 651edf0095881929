// Simulated int8 inputs against equation 3.1 in double, and in a model.

#include "quant/simulated_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/test_support.h"
#include "quant/quant_test_support.h"

namespace godwit::quant::simulated_inputs_test {
namespace {

// Two channels, of which one is a hundred times the other.
struct Rows {
  std::vector<float> values{0.5f, -90.0f, 0.013f, 254.0f, -1.0f, 3.0f, 0.0f, 0.7f};
  MatrixView<float> view() { return {values.data(), 4, 2, 2}; }
};
const std::vector<float> kLargest = {1.0f, 127.0f};

// Equation 3.1 in double, for the magnitude that each element is given.
std::vector<double> Expected(const std::vector<double>& magnitudes) {
  std::vector<double> expected = {};
  const Rows rows;
  for (size_t i = 0; i < rows.values.size(); ++i) {
    const double scale = magnitudes[i] / 127;
    const double integer = std::clamp(std::nearbyint(rows.values[i] / scale), -127.0, 127.0);
    expected.push_back(scale * integer);
  }
  return expected;
}

void ExpectSimulated(InputGrid grid, const std::vector<double>& magnitudes) {
  Rows rows;
  SimulateInt8(grid, kLargest, {}, rows.view());
  const std::vector<double> expected = Expected(magnitudes);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(rows.values[i], expected[i], 1e-6 * std::fabs(expected[i])) << i;
  }
}

TEST(SimulatedInputsTest, AScaleForAllForARowAndForAColumn) {
  ExpectSimulated(InputGrid::kTensor, std::vector<double>(8, 127));
  ExpectSimulated(InputGrid::kToken, {90, 90, 254, 254, 3, 3, 0.7f, 0.7f});
  ExpectSimulated(InputGrid::kChannel, {1, 127, 1, 127, 1, 127, 1, 127});
}

TEST(SimulatedInputsTest, MagnitudesBeyondTheCalibrationAreClipped) {
  Rows rows;
  SimulateInt8(InputGrid::kChannel, kLargest, {}, rows.view());
  EXPECT_EQ(rows.values[3], 127.0f) << "254 in a channel of at most 127";
  EXPECT_EQ(rows.values[4], -1.0f);
}

TEST(SimulatedInputsTest, SilentChannelsAndRowsStaySilent) {
  std::vector<float> values{0, 4};
  const std::vector<float> largest{0, 0};
  SimulateInt8(InputGrid::kChannel, largest, {}, {values.data(), 1, 2, 2});
  EXPECT_THAT(values, testing::ElementsAre(0, 0));
  std::vector<float> row(3);
  SimulateInt8(InputGrid::kToken, largest, {}, {row.data(), 1, 3, 3});
  EXPECT_THAT(row, testing::Each(0));
}

TEST(SimulatedInputsTest, NamesAreThoseOfTheFigure) {
  EXPECT_EQ(FindInputGrid("per-channel"), InputGrid::kChannel);
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [] { FindInputGrid("channel"); }),
              testing::HasSubstr("per-tensor, per-token or per-channel"));
}

// The relative error of the states that a model computes from simulated inputs.
double RelativeError(InputGrid grid, const TestModel& model) {
  const auto decoder = Load(model.spec, model.weights);
  const auto pieces = TestPieces(1, 20);
  const TestExec exec;
  const auto largest =
      LargestOfQuantized(model.tensors, Calibrate(*exec, *decoder, pieces, nullptr));
  const auto states = [&](const LinearFilter* filter) {
    Exec filtered = *exec;
    filtered.filter = filter;
    const auto text = DenseText(decoder->spec());
    const int64_t width = decoder->hidden_size();
    std::vector<float> hidden(20 * static_cast<size_t>(width));
    const Segment segment{pieces[0], text.get()};
    decoder->Forward(filtered, {&segment, 1}, {hidden.data(), 20, width, width});
    return hidden;
  };
  const LinearFilter filter = SimulateInputs(grid, largest);
  const auto exact = states(nullptr), simulated = states(&filter);
  double error = 0, all = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(exact[i] - simulated[i], 2);
    all += std::pow(exact[i], 2);
  }
  return std::sqrt(error / all);
}

// Table 3.1: an outlier channel ruins scales of a tensor and of a token, and not those of channels.
TEST(SimulatedInputsTest, OnlyScalesOfChannelsSurviveAnOutlier) {
  TestModel model;
  for (int layer = 0; layer < static_cast<int>(model.spec.layers); ++layer) {
    const std::string name = fmt::format("model.layers.{}.", layer);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
      model.weights.Set(name + norm + ".weight", 5, 300);
    }
    const auto divide = [&](const std::string& weight) {
      const std::string full = name + weight + ".weight";
      const int64_t columns = model.weights.Find(full)->shape[1];
      for (int64_t row = 0; row < model.weights.Find(full)->shape[0]; ++row) {
        model.weights.Set(full, row * columns + 5, 0.001f);
      }
    };
    for (const char* part : {"q_proj", "k_proj", "v_proj"})
      divide("self_attn." + std::string(part));
    divide("mlp.gate_proj");
    divide("mlp.up_proj");
  }
  const double channel = RelativeError(InputGrid::kChannel, model);
  EXPECT_GT(channel, 0);
  EXPECT_LT(channel, 0.02);
  EXPECT_GT(RelativeError(InputGrid::kToken, model), 5 * channel);
  EXPECT_GT(RelativeError(InputGrid::kTensor, model), 5 * channel);
}

TEST(SimulatedInputsTest, LeavesTheHeadAndTheRoutersAlone) {
  const TestModel model;
  const auto decoder = Load(model.spec, model.weights);
  const TestExec exec;
  const auto largest =
      LargestOfQuantized(model.tensors, Calibrate(*exec, *decoder, TestPieces(1, 20), nullptr));
  EXPECT_EQ(largest.size(), 4u * static_cast<size_t>(model.spec.layers));
  EXPECT_TRUE(largest.contains("model.layers.1.mlp.down_proj"));
  EXPECT_FALSE(largest.contains("lm_head"));
}

}  // namespace
}  // namespace godwit::quant::simulated_inputs_test
