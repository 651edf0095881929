#include "ops/simulation.h"

#include "base/error.h"
#include "base/test_support.h"
#include "ops/test_support.h"

namespace godwit::ops {
namespace {

constexpr int64_t kRows = 5, kInputs = 67, kOutputs = 40;

class SimulationTest : public OpsTest {
 protected:
  // x * w^T in double, of what `scheme` leaves of both: input columns in `exact` are multiplied as
  // they are, the others quantized by hand.
  void ExpectSimulated(const std::string& name, const GappedMatrix& x,
                       const std::vector<int64_t>& exact = {}) {
    SCOPED_TRACE(name);
    const SimulatedScheme& scheme = FindSimulatedScheme(name);
    const std::vector<int64_t> parts = {24, 16};
    const RawWeight raw(DType::kF32, kOutputs, kInputs, 2);
    Weight weight = raw.Pack(three_);
    weight.bias = GappedMatrix(1, kOutputs, 3).Row(0);
    const auto bias = weight.bias;
    const Weight simulated = Simulate(three_, scheme, parts, std::move(weight));
    GappedMatrix out(kRows, kOutputs);
    Linear(On(three_), x.view(), simulated, out.view());
    EXPECT_TRUE(out.GapsIntact());

    const auto is_exact = [&](int64_t k) { return std::ranges::count(exact, k) > 0; };
    const auto in_part = [&](int64_t j, int64_t begin, int64_t end) {
      return begin <= j && j < end;
    };
    // Largest weight among the outputs that share a scale with output j.
    const auto weight_absmax = [&](int64_t j) {
      float largest = 0;
      const int64_t part_begin = j < 24 ? 0 : 24, part_end = j < 24 ? 24 : 40;
      const int64_t step = scheme.outputs_per_scale == 0 ? 40 : scheme.outputs_per_scale;
      const int64_t begin = part_begin + (j - part_begin) / step * step;
      for (int64_t i = begin; in_part(i, begin, std::min(begin + step, part_end)); ++i) {
        for (int64_t k = 0; k < kInputs; ++k) largest = std::max(largest, std::fabs(raw.At(i, k)));
      }
      return largest;
    };
    const auto input_absmax = [&](int64_t row) {
      float largest = 0;
      for (int64_t i = 0; i < kRows; ++i) {
        if (i != row && !scheme.inputs_share_scale) continue;
        for (int64_t k = 0; k < kInputs; ++k) {
          if (!is_exact(k)) largest = std::max(largest, std::fabs(x.At(i, k)));
        }
      }
      return largest;
    };
    const auto rounded = [](float value, float absmax) {
      if (absmax == 0) return 0.0;
      return double{absmax / 127} * std::nearbyint(value * (127 / absmax));
    };
    for (int64_t i = 0; i < kRows; ++i) {
      for (int64_t j = 0; j < kOutputs; ++j) {
        double sum = bias[static_cast<size_t>(j)], magnitude = 0;
        for (int64_t k = 0; k < kInputs; ++k) {
          const double product = is_exact(k) ? double{x.At(i, k)} * raw.At(j, k)
                                             : rounded(x.At(i, k), input_absmax(i)) *
                                                   rounded(raw.At(j, k), weight_absmax(j));
          sum += product;
          magnitude += std::fabs(product);
        }
        ASSERT_NEAR(out.At(i, j), sum, (kInputs + 4) * kEpsilon * (magnitude + 1))
            << "row " << i << ", output " << j;
      }
    }
  }
};

TEST_P(SimulationTest, EverySchemeIsItsDefinition) {
  GappedMatrix x(kRows, kInputs, 1);
  std::ranges::fill(x.view().RowSpan(2), 0.0f);
  for (const SimulatedScheme& scheme : kSimulatedSchemes)
    ExpectSimulated(std::string(scheme.name), x);
}

TEST_P(SimulationTest, OutlierColumnsStayInFloat) {
  GappedMatrix x(kRows, kInputs, 1);
  x.view().Row(1)[30] = -6;
  x.view().Row(4)[66] = 100;
  x.view().Row(4)[5] = 5.99f;  // none
  ExpectSimulated("llm-int8", x, {30, 66});
}

// The simulation and the kernels differ by the rounding of float sums alone.
TEST_P(SimulationTest, W8a8IsWhatInt8KernelsCompute) {
  const GappedMatrix x(kRows, kInputs, 1);
  const RawWeight raw(DType::kF32, kOutputs, kInputs, 2);
  const int64_t parts[] = {kOutputs};
  const Weight simulated = Simulate(three_, FindSimulatedScheme("w8a8"), parts, raw.Pack(three_));
  const Weight quantized = raw.PackAs(three_, DType::kI8);
  GappedMatrix expected(kRows, kOutputs), out(kRows, kOutputs);
  Linear(On(three_), x.view(), quantized, expected.view());
  Linear(On(three_), x.view(), simulated, out.view());
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t j = 0; j < kOutputs; ++j) {
      ASSERT_NEAR(out.At(i, j), expected.At(i, j), kInputs * 4 * kEpsilon);
    }
  }
}

TEST_P(SimulationTest, ARowWithNanStaysNan) {
  GappedMatrix x(kRows, kInputs, 1);
  x.view().Row(3)[7] = kNan;
  const int64_t parts[] = {kOutputs};
  for (const SimulatedScheme& scheme : kSimulatedSchemes) {
    const Weight simulated =
        Simulate(three_, scheme, parts, RawWeight(DType::kF32, kOutputs, kInputs, 2).Pack(three_));
    GappedMatrix out(kRows, kOutputs);
    Linear(On(three_), x.view(), simulated, out.view());
    for (const float value : out.Row(3)) ASSERT_TRUE(std::isnan(value)) << scheme.name;
    EXPECT_EQ(std::isnan(out.At(0, 0)), scheme.inputs_share_scale) << scheme.name;
  }
}

TEST(FindSimulatedSchemeTest, ListsWhatThereIs) {
  EXPECT_EQ(FindSimulatedScheme("zeroquant").name, "zeroquant");
  const Error error = ErrorOf([] { FindSimulatedScheme("int4"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  for (const SimulatedScheme& scheme : kSimulatedSchemes) {
    EXPECT_NE(std::string(error.what()).find(scheme.name), std::string::npos);
  }
}

GODWIT_FOR_EVERY_ISA(SimulationTest);

}  // namespace
}  // namespace godwit::ops
