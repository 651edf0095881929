#include "quant/group_codes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/test_support.h"
#include "quant/quant_test_support.h"

namespace godwit::quant::group_codes_test {
namespace {

std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x;
  for (int64_t i = 0; i < n; ++i) x.push_back(normal(random));
  return x;
}

GroupedMatrix Quantize(const std::vector<float>& w, int64_t columns, const Grouping& grouping,
                       DType stored = DType::kF32, int threads = 2,
                       const RoundingFeedback* feedback = nullptr) {
  return QuantizeInGroups(*TestExec(threads), "x.weight", std::ssize(w) / columns, columns,
                          grouping, stored, feedback, [&](int64_t row, std::span<float> out) {
                            std::copy_n(w.begin() + row * columns, columns, out.begin());
                          });
}

TEST(ToInt4, RoundsToEvenAndSaturates) {
  EXPECT_EQ(ToInt4(2.5f, 1), 2);
  EXPECT_EQ(ToInt4(-3.5f, 1), -4);
  EXPECT_EQ(ToInt4(1e30f, 1), 7);
  EXPECT_EQ(ToInt4(-1e30f, 1), -8);
  EXPECT_EQ(ToInt4(3, 2), 2);  // 1.5
}

TEST(GroupScale, IsExactWhereIntegersAre) {
  const std::vector<float> w = {-7, 3, 0, 7, 1, -2, 5, -6};
  const std::vector<float> alike(w.size(), 1);
  EXPECT_FLOAT_EQ(GroupScale(w, alike, DType::kF32), 1);
  EXPECT_GT(GroupScale(std::vector<float>(8, 0.0f), alike, DType::kF32), 0);
}

// No scale of a fine grid is better by more than the distance of the trials.
TEST(GroupScale, IsOfTheLeastWeightedError) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> w = Random(32, seed);
    std::vector<float> importance = Random(32, seed + 100);
    for (float& x : importance) x = x * x;
    const auto error = [&](float scale) {
      double sum = 0;
      for (size_t i = 0; i < w.size(); ++i) {
        sum += double{importance[i]} *
               std::pow(w[i] - scale * static_cast<float>(ToInt4(w[i], scale)), 2);
      }
      return sum;
    };
    const float scale = GroupScale(w, importance, DType::kF32);
    double least = std::numeric_limits<double>::max();
    for (float s = 0.1f; s < 0.6f; s += 0.001f) least = std::min(least, error(s));
    EXPECT_LT(error(scale), 1.25 * least) << seed;
    EXPECT_EQ(GroupScale(w, importance, DType::kBF16), ToFloat(ToBF16(scale)));
  }
}

TEST(GroupScaleAndZero, IsExactWhereIntegersAre) {
  std::vector<float> w;
  for (int i = -3; i <= 12; ++i) w.push_back(0.5f * static_cast<float>(i));
  const ScaleAndZero found = GroupScaleAndZero(w, std::vector<float>(w.size(), 1), DType::kF32);
  EXPECT_FLOAT_EQ(found.scale, 0.5f);
  EXPECT_EQ(found.zero, -5);
  EXPECT_EQ(ToInt4(-1.5f, found.scale, found.zero), -8);
  EXPECT_EQ(ToInt4(100, found.scale, found.zero), 7);
  EXPECT_EQ(ToInt4(-100, found.scale, found.zero), -8);
  // If all have one sign, the zero point is an end. Zeros have a scale, too.
  EXPECT_EQ(
      GroupScaleAndZero(std::vector<float>{1, 15}, std::vector<float>{1, 1}, DType::kF32).zero, -8);
  EXPECT_GT(GroupScaleAndZero(std::vector<float>(8, 0.0f), w, DType::kF32).scale, 0);
}

// Weights that are not symmetric have less than half of the error without a zero point.
TEST(GroupScaleAndZero, GainsWhereWeightsLieOnOneSide) {
  std::vector<float> w = Random(32 * 64, 1);
  for (float& x : w) x = std::abs(x);
  const auto error = [&](bool zeros) {
    const GroupedMatrix matrix = Quantize(w, 32, {.size = 32, .zeros = zeros});
    std::vector<float> values(32);
    double sum = 0;
    for (int64_t row = 0; row < matrix.rows; ++row) {
      matrix.Values(row, values);
      for (size_t i = 0; i < 32; ++i) {
        sum += std::pow(values[i] - w[static_cast<size_t>(row) * 32 + i], 2);
      }
    }
    return sum;
  };
  EXPECT_LT(error(true), 0.5 * error(false));
}

TEST(QuantizeInGroups, EachGroupHasItsScale) {
  const std::vector<float> w = {7, -8, 1, 0, 14,   -16,  2, 0,  //
                                0, 0,  0, 0, 0.7f, 0.1f, 0, -0.3f};
  const GroupedMatrix matrix = Quantize(w, 8, {4});
  ASSERT_EQ(matrix.scales.size(), 4);
  EXPECT_THAT(matrix.scales[0], testing::FloatEq(1));
  EXPECT_THAT(matrix.scales[1], testing::FloatEq(2));
  std::vector<int8_t> integers(8);
  matrix.Integers(0, integers);
  EXPECT_EQ(integers, (std::vector<int8_t>{7, -8, 1, 0, 7, -8, 1, 0}));
  matrix.Integers(1, integers);
  EXPECT_EQ(integers, (std::vector<int8_t>{0, 0, 0, 0, 7, 1, 0, -3}));
  std::vector<float> values(8);
  matrix.Values(1, values);
  EXPECT_NEAR(values[7], -0.3f, 1e-6f);
  // Codes are integer + 8, the first one in the lower half.
  EXPECT_EQ(matrix.packed[0], std::byte{0x0f});
  EXPECT_EQ(matrix.packed[1], std::byte{0x89});
}

TEST(QuantizeInGroups, RowsArePaddedToWholeWords) {
  const GroupedMatrix matrix = Quantize(Random(3 * 12, 1), 12, {4});
  EXPECT_EQ(matrix.packed_columns(), 8);
  EXPECT_EQ(matrix.packed.size(), 24);
  EXPECT_EQ(matrix.packed[6], std::byte{0});
}

TEST(QuantizeInGroups, RefusesWhatIsNoNumberByName) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> w(8, 1);
    w[5] = bad;
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported, [&] { Quantize(w, 8, {4}); }),
                testing::HasSubstr("x.weight holds NaN or infinity"));
  }
}

// Inputs that are much alike, so that one weight can make up for another's error.
class WithFeedback : public testing::Test {
 protected:
  static constexpr int64_t kInputs = 48, kRows = 21, kSamples = 300;

  WithFeedback() {
    const std::vector<float> common = Random(kSamples, 7), own = Random(kSamples * kInputs, 8);
    for (int64_t t = 0; t < kSamples; ++t) {
      for (int64_t i = 0; i < kInputs; ++i) {
        x_.push_back(2 * common[t] + own[t * kInputs + i]);
      }
    }
    products_.resize(kInputs * kInputs);
    for (int64_t t = 0; t < kSamples; ++t) {
      for (int64_t i = 0; i < kInputs; ++i) {
        for (int64_t j = 0; j < kInputs; ++j) {
          products_[i * kInputs + j] += X(t, i) * X(t, j);
        }
      }
    }
  }

  float X(int64_t t, int64_t i) const { return x_[t * kInputs + i]; }

  // The error of the outputs on the samples.
  double Error(const GroupedMatrix& matrix) const {
    double error = 0;
    std::vector<float> values(kInputs);
    for (int64_t row = 0; row < kRows; ++row) {
      matrix.Values(row, values);
      for (int64_t t = 0; t < kSamples; ++t) {
        double difference = 0;
        for (int64_t i = 0; i < kInputs; ++i) {
          difference += double{X(t, i)} * (values[i] - w_[row * kInputs + i]);
        }
        error += difference * difference;
      }
    }
    return error;
  }

  const std::vector<float> w_ = Random(kRows * kInputs, 9);
  std::vector<float> x_, products_;
};

TEST_F(WithFeedback, OutputsMoveLess) {
  const RoundingFeedback feedback(*TestExec(2), products_, {});
  const double nearest = Error(Quantize(w_, kInputs, {16}));
  const double better = Error(Quantize(w_, kInputs, {16}, DType::kF32, 2, &feedback));
  EXPECT_LT(better, 0.3 * nearest);
}

TEST_F(WithFeedback, NothingDependsOnTheThreads) {
  const RoundingFeedback one(*TestExec(1), products_, {}), three(*TestExec(3), products_, {});
  const GroupedMatrix a = Quantize(w_, kInputs, {16}, DType::kBF16, 1, &one);
  const GroupedMatrix b = Quantize(w_, kInputs, {16}, DType::kBF16, 3, &three);
  EXPECT_EQ(a.packed, b.packed);
  EXPECT_EQ(a.scales, b.scales);
}

}  // namespace
}  // namespace godwit::quant::group_codes_test
