#include "cli/plot/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace godwit::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::Pointwise;

TEST(AxisTest, TicksAreRoundAndCoverTheValues) {
  EXPECT_THAT(LinearTicks(0, 10, 5), Pointwise(DoubleNear(1e-9), {0, 2, 4, 6, 8, 10}));
  EXPECT_THAT(LinearTicks(3.1, 3.4, 6),
              Pointwise(DoubleNear(1e-9), {3.1, 3.15, 3.2, 3.25, 3.3, 3.35, 3.4}));
  EXPECT_THAT(LinearTicks(-7, 12000, 4),
              Pointwise(DoubleNear(1e-9), {-5000, 0, 5000, 10000, 15000}));
  EXPECT_THAT(LinearTicks(5, 5, 2), Pointwise(DoubleNear(1e-9), {4, 5, 6}));
  EXPECT_THAT(LogTicks(3, 500), Pointwise(DoubleNear(1e-9), {1, 10, 100, 1000}));
  EXPECT_THAT(LogTicks(10, 10), Pointwise(DoubleNear(1e-9), {10, 100}));
  for (const double low : {-3.7, 0.0, 12.3}) {
    for (const double width : {1e-3, 0.7, 5.0, 1e6}) {
      const auto ticks = LinearTicks(low, low + width, 6);
      EXPECT_LE(ticks.front(), low);
      EXPECT_GE(ticks.back(), low + width - 1e-9);
      EXPECT_LE(ticks.size(), 9u);
    }
  }
}

TEST(AxisTest, ValuesLieBetweenTheTicks) {
  const Axis linear({0, 5, 10}, 100, 20, /*log=*/false);
  EXPECT_DOUBLE_EQ(linear.At(0), 100);
  EXPECT_DOUBLE_EQ(linear.At(2.5), 80);
  const Axis log({0.1, 1, 10}, 0, 60, /*log=*/true);
  EXPECT_DOUBLE_EQ(log.At(1), 30);
  EXPECT_DOUBLE_EQ(log.At(10), 60);
}

}  // namespace
}  // namespace godwit::cli
