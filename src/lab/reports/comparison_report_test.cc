#include "lab/reports/comparison_report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace godwit::lab::comparison_report_test {
namespace {

TEST(ComparisonReport, TellsOfARowBeforeAllIsKnown) {
  const std::vector<std::string> kvs{"dense", "sinks:4+60"};
  PolicyComparison comparison(kvs, 1);
  ComparedRow& row =
      comparison.Row({.about = {{"task", "passkey"}, {"length", 4096}, {"depth", nullptr}}});
  EXPECT_EQ(comparison.SoFar(row), "");
  row.scores[0] = {1, 1, 0, 1};
  EXPECT_EQ(comparison.SoFar(row), "passkey, length 4096: dense 0.750 of 4");
  row.scores[1] = {0.5};
  EXPECT_EQ(comparison.SoFar(row), "passkey, length 4096: dense 0.750 of 4, sinks:4+60 0.500 of 1");

  ComparedRow& perplexity = comparison.Row(
      {.about = {{"task", "lambada"}, {"figure", "perplexity"}}, .exponential = true});
  perplexity.scores[0] = {std::log(2), std::log(8)};
  EXPECT_EQ(comparison.SoFar(perplexity), "lambada, perplexity: dense 4 of 2");
}

TEST(ComparisonReport, LongNamesStandAboveTheTable) {
  const auto table_of = [](const std::vector<std::string>& kvs) {
    PolicyComparison comparison(kvs, 1);
    ComparedRow& row = comparison.Row({.about = {{"task", "lines"}}});
    row.scores = {{1, 1}, {1, 1}};
    return comparison.Text(200);
  };
  EXPECT_EQ(table_of({"dense", "sinks:4+60"}),
            "task   n  dense  sinks:4+60    sinks:4+60 less dense\n"
            "lines  2  1.000       1.000  +0.000 [+0.000, +0.000]\n");
  EXPECT_EQ(table_of({"dense", "blocks:second_block_count=16,top_p=0.5"}),
            "#1  dense\n"
            "#2  blocks:second_block_count=16,top_p=0.5\n"
            "\n"
            "task   n     #1     #2               #2 less #1\n"
            "lines  2  1.000  1.000  +0.000 [+0.000, +0.000]\n");
}

}  // namespace
}  // namespace godwit::lab::comparison_report_test
