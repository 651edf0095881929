#include "cli/plot/step_panels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>

namespace godwit::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StepPanels ChartOf(const std::vector<float>& first, const std::vector<float>& second) {
  return {.title = "a < b",
          .columns = {"before", "after"},
          .rows = {{"one", {{StepPanel{first, "note"}, StepPanel{second, "none"}}}}}};
}

// The heights and the ends of the steps of every filled path.
struct Steps {
  std::vector<double> heights, ends;
  double left = 0, base = 0;
};
std::vector<Steps> StepsOf(const std::string& svg) {
  std::vector<Steps> all;
  const std::regex path("d=\"M([0-9.]+) ([0-9.]+)([VH0-9.]+)V([0-9.]+)Z\" fill=");
  const std::regex step("V([0-9.]+)H([0-9.]+)");
  for (std::sregex_iterator i(svg.begin(), svg.end(), path), end; i != end; ++i) {
    Steps steps{.left = std::stod((*i)[1]), .base = std::stod((*i)[2])};
    EXPECT_EQ((*i)[2], (*i)[4]);
    const std::string inner = (*i)[3];
    for (std::sregex_iterator j(inner.begin(), inner.end(), step); j != end; ++j) {
      steps.heights.push_back(std::stod((*j)[1]));
      steps.ends.push_back(std::stod((*j)[2]));
    }
    all.push_back(std::move(steps));
  }
  return all;
}

TEST(StepPanels, APairHasOneAxis) {
  const auto panels = StepsOf(ChartOf({1, 100, 10}, {10, 10, 10}).Svg());
  ASSERT_EQ(panels.size(), 2);
  ASSERT_EQ(panels[0].heights.size(), 3);
  EXPECT_EQ(panels[0].heights[0], panels[0].base);
  // On a logarithmic axis ten lies in the middle.
  EXPECT_NEAR(panels[0].heights[2], (panels[0].heights[0] + panels[0].heights[1]) / 2, 0.11);
  for (const double height : panels[1].heights) EXPECT_EQ(height, panels[0].heights[2]);
  EXPECT_GT(panels[1].left, panels[0].ends.back());
}

TEST(StepPanels, OneOutlierOfThousandsIsSeen) {
  std::vector<float> values(8191, 1);
  values[4000] = 100;
  const Steps panel = StepsOf(ChartOf(values, {}).Svg()).at(0);
  EXPECT_EQ(panel.heights.size(), 180);
  EXPECT_EQ(std::ranges::count(panel.heights, std::ranges::min(panel.heights)), 1);
  EXPECT_TRUE(std::ranges::is_sorted(panel.ends));
  EXPECT_EQ(panel.ends.back(), panel.left + 180);
}

TEST(StepPanels, StaysInItsFrameWhateverTheValues) {
  for (const std::vector<float>& values : std::vector<std::vector<float>>{
           {0, 0, 0}, {5}, {0, 1e-30f, 1}, {1e-20f, 2e-20f}, {3e38f, 1}, {INFINITY, 1}}) {
    const std::string svg = ChartOf(values, {}).Svg();
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    const Steps panel = StepsOf(svg).at(0);
    for (const double height : panel.heights) {
      EXPECT_GE(height, panel.base - 100);
      EXPECT_LE(height, panel.base);
    }
  }
}

TEST(StepPanels, WhatHasNoValuesHasANote) {
  const std::string svg = ChartOf({1, 2}, {}).Svg();
  EXPECT_EQ(StepsOf(svg).size(), 1);
  for (const char* text : {">a &lt; b<", ">before<", ">after<", ">one<", ">note<", ">none<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(StepPanels{}.Svg(), HasSubstr("</svg>"));
}

}  // namespace
}  // namespace godwit::cli
