#include "cli/plot/line_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace godwit::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
