#include "ops/streams.h"

#include <cmath>
#include <numeric>

#include "ops/test_support.h"

namespace godwit::ops::streams_test {
namespace {

class StreamsTest : public OpsTest {};

constexpr int64_t kStreams = 3, kWidth = 7;

TEST_P(StreamsTest, ArePredictedFromOneAnother) {
  for (const int64_t rows : {1, 300}) {
    const GappedMatrix streams(rows, kStreams * kWidth, 1), factors(rows, kStreams * kStreams, 2);
    GappedMatrix predicted(rows, kStreams * kWidth, 3);
    PredictStreams(On(three_), streams.view(), factors.view(), predicted.view());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < kStreams; ++j) {
        for (int64_t d = 0; d < kWidth; ++d) {
          double expected = streams.At(row, j * kWidth + d);
          for (int64_t i = 0; i < kStreams; ++i) {
            expected +=
                double{factors.At(row, j * kStreams + i)} * double{streams.At(row, i * kWidth + d)};
          }
          ASSERT_NEAR(predicted.At(row, j * kWidth + d), expected, 1e-4);
        }
      }
    }
    EXPECT_TRUE(predicted.GapsIntact());
  }
}

TEST_P(StreamsTest, AreCorrectedByWhatOneOfThemBecame) {
  constexpr int64_t kActive = 1;
  for (const int64_t rows : {1, 300}) {
    GappedMatrix streams(rows, kStreams * kWidth, 4);
    const GappedMatrix before = streams, activated(rows, kWidth, 5), factors(rows, kStreams, 6);
    CorrectStreams(On(three_), activated.view(), factors.view(), kActive, streams.view());
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t col = 0; col < kStreams * kWidth; ++col) {
        const int64_t j = col / kWidth, d = col % kWidth;
        const double more = double{activated.At(row, d)} - before.At(row, kActive * kWidth + d);
        ASSERT_NEAR(streams.At(row, col), before.At(row, col) + more * (factors.At(row, j) + 1),
                    1e-4);
      }
    }
    EXPECT_TRUE(streams.GapsIntact());
  }
}

double RootMeanSquare(const GappedMatrix& x, int64_t row, int64_t cols) {
  double sum = 0;
  for (int64_t col = 0; col < cols; ++col) sum += double{x.At(row, col)} * x.At(row, col);
  return std::sqrt(sum / static_cast<double>(cols));
}

TEST_P(StreamsTest, GetTheMagnitudeOfAnother) {
  const GappedMatrix like(40, kWidth, 7);
  GappedMatrix x(40, kWidth, 8);
  for (float& number : x.view().RowSpan(5)) number = 0;
  MatchMagnitude(On(three_), like.view(), x.view());
  for (int64_t row = 0; row < 40; ++row) {
    EXPECT_NEAR(RootMeanSquare(x, row, kWidth), row == 5 ? 0 : RootMeanSquare(like, row, kWidth),
                1e-5);
  }
  EXPECT_TRUE(x.GapsIntact());
}

TEST_P(StreamsTest, OnlyUnitsFarAboveTheMeanPass) {
  GappedMatrix x(30, 50, 9);
  const GappedMatrix before = x;
  CutBelow(On(three_), /*deviations=*/0.8f, x.view());
  int64_t passed = 0;
  for (int64_t row = 0; row < 30; ++row) {
    double mean = 0, square = 0;
    for (int64_t col = 0; col < 50; ++col) mean += before.At(row, col) / 50.0;
    for (int64_t col = 0; col < 50; ++col) square += std::pow(before.At(row, col) - mean, 2) / 50;
    const double cutoff = mean + 0.8 * std::sqrt(square);
    for (int64_t col = 0; col < 50; ++col) {
      const double expected = std::max(0.0, before.At(row, col) - cutoff);
      passed += expected > 0 ? 1 : 0;
      ASSERT_NEAR(x.At(row, col), expected, 1e-5);
    }
  }
  EXPECT_GT(passed, 0);
  EXPECT_TRUE(x.GapsIntact());
}

TEST_P(StreamsTest, TangentsAndFactorsOfColumns) {
  GappedMatrix x(9, kWidth, 10);
  const GappedMatrix before = x;
  Tanh(On(three_), x.view());
  std::vector<float> factors(kWidth);
  std::iota(factors.begin(), factors.end(), 0.5f);
  GappedMatrix out(9, kWidth, 11);
  ScaleColumns(On(three_), before.view(), factors, out.view());
  for (int64_t row = 0; row < 9; ++row) {
    for (int64_t col = 0; col < kWidth; ++col) {
      EXPECT_FLOAT_EQ(x.At(row, col), std::tanh(before.At(row, col)));
      EXPECT_EQ(out.At(row, col), before.At(row, col) * factors[col]);
    }
  }
}

GODWIT_FOR_EVERY_ISA(StreamsTest);

}  // namespace
}  // namespace godwit::ops::streams_test
