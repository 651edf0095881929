#include "cli/plot/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace godwit::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

TEST(LineChartTest, TicksAreRoundAndCoverTheValues) {
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

TEST(LineChartTest, DrawsEveryLineAndLeavesGaps) {
  const LineChart chart{.title = "a < b & c",
                        .x_label = "tokens",
                        .y_label = "nats",
                        .lines = {{"one", {{0, 1}, {1, NAN}, {2, 3}, {3, 2}}}, {"two", {{0, 2}}}}};
  const std::string svg = chart.Svg();
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; c"));
  EXPECT_THAT(svg, HasSubstr(">one<"));
  EXPECT_THAT(svg, HasSubstr(">two<"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  // Down at the first point, up at the gap, down again, then a line.
  EXPECT_THAT(svg, ::testing::ContainsRegex("d=\"M[0-9. ]+M[0-9. ]+L[0-9. ]+\""));
}

TEST(LineChartTest, LeavesOutWhatALogarithmCannotShow) {
  const LineChart chart{.log_y = true, .lines = {{"one", {{0, 0}, {1, 10}, {2, -1}, {3, 1000}}}}};
  const std::string svg = chart.Svg();
  EXPECT_THAT(svg, HasSubstr(">100<"));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_THAT(LineChart{}.Svg(), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace godwit::cli
