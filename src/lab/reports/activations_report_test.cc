#include "lab/reports/activations_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace godwit::lab::activations_report_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ActivationsReport, FindsOutliers) {
  const Outliers outliers = FindOutliers({1, 70, 2, 1, 70, 1});
  EXPECT_EQ(outliers.largest, 70);
  EXPECT_EQ(outliers.median, 1);
  EXPECT_EQ(outliers.ratio(), 70);
  EXPECT_THAT(outliers.channels, ElementsAre(1, 4, 2, 0));
  EXPECT_THAT(FindOutliers({3}).channels, ElementsAre(0));
}

const quant::LinearMaxima kSmoothed = {
    .name = "smoothed",
    .before = {.inputs = {1, 128, 1}, .weights = {0.5f, 0.25f, 0.5f}},
    .after = quant::ChannelMaxima{.inputs = {1, 2, 1}, .weights = {0.5f, 16, 0.5f}}};
const quant::LinearMaxima kExpert = {.name = "expert", .before = {.weights = {0, 0, 3}}};

TEST(ActivationsReport, ATableForEachLayer) {
  const std::string text = MaximaText(std::vector{kSmoothed, kExpert});
  EXPECT_THAT(text, HasSubstr("  |x|               128       1  128 x  1: 128, 0: 1, 2: 1\n"
                              "  |x| smoothed        2       1    2 x  1: 2, 0: 1, 2: 1\n"));
  EXPECT_THAT(text, HasSubstr("expert\n"));
  EXPECT_THAT(text, HasSubstr("  |x|                                   no token of the text "
                              "reaches it\n"
                              "  |W|                 3       0         2: 3, 0: 0, 1: 0\n"
                              "  not smoothed\n"));
}

TEST(ActivationsReport, JsonHasEveryChannel) {
  const auto json = MaximaJson(std::vector{kSmoothed, kExpert});
  EXPECT_EQ(json[0]["inputs"]["after"], nlohmann::ordered_json({1, 2, 1}));
  EXPECT_EQ(json[0]["weights"]["before"], nlohmann::ordered_json({0.5, 0.25, 0.5}));
  EXPECT_TRUE(json[1]["weights"]["after"].is_null());
}

}  // namespace
}  // namespace godwit::lab::activations_report_test
