#include "generate/step_costs.h"

#include <gtest/gtest.h>

namespace godwit::step_costs_test {
namespace {

TEST(StepCosts, UnmeasuredRowCountsCostAsMuchAsFewerRows) {
  StepCosts costs;
  EXPECT_EQ(costs.Ms(1), 0);
  EXPECT_EQ(costs.Largest(), 0);
  for (int i = 0; i < 2; ++i) costs.Record(4, 20);
  EXPECT_EQ(costs.Ms(1), 0) << "fewer rows are not known";
  for (int i = 0; i < 2; ++i) costs.Record(1, 10);
  EXPECT_EQ(costs.Ms(3), 10) << "to be tried";
  EXPECT_EQ(costs.Ms(4), 20);
  EXPECT_EQ(costs.Ms(64), 20) << "to be tried";
  EXPECT_EQ(costs.Largest(), 4);
  for (int i = 0; i < 2; ++i) costs.Record(512, 1);  // a prompt
  EXPECT_EQ(costs.Largest(), 4);
}

TEST(StepCosts, LieOnLinesBetweenThoseThatAreGiven) {
  const StepCosts costs = StepCosts::AlongLines({{8, 40}, {2, 12}, {4, 20}});
  EXPECT_EQ(costs.Ms(1), 0);
  EXPECT_EQ(costs.Ms(2), 12);
  EXPECT_EQ(costs.Ms(3), 16);
  EXPECT_EQ(costs.Ms(4), 20);
  EXPECT_EQ(costs.Ms(6), 30);
  EXPECT_EQ(costs.Ms(8), 40);
  EXPECT_EQ(costs.Ms(64), 40);
  EXPECT_EQ(costs.Largest(), 8);
}

TEST(StepCosts, AnInterruptionAloneSaysNothing) {
  StepCosts costs = StepCosts::AlongLines({{1, 10}});
  costs.Record(2, 80);
  EXPECT_EQ(costs.Ms(2), 10) << "to be tried again";
  EXPECT_EQ(costs.Largest(), 1);
  costs.Record(2, 12);
  EXPECT_EQ(costs.Ms(2), 12);
}

TEST(StepCosts, FollowWhatChanges) {
  StepCosts costs = StepCosts::AlongLines({{1, 10}, {4, 12}});
  costs.Record(1, 1e6);  // interrupted
  EXPECT_LT(costs.Ms(1), 12);
  for (int i = 0; i < 200; ++i) costs.Record(1, 30);
  EXPECT_NEAR(costs.Ms(1), 30, 0.1);
  EXPECT_GT(costs.Ms(4), 13) << "the others drift along";
}

TEST(StepCosts, NoisyTimesAverageOut) {
  StepCosts costs = StepCosts::AlongLines({{1, 10}, {2, 20}});
  for (int i = 0; i < 1000; ++i) costs.Record(2, i % 2 == 0 ? 17 : 24);
  EXPECT_NEAR(costs.Ms(1), 10, 0.5);
  EXPECT_NEAR(costs.Ms(2), 19, 2);
}

}  // namespace
}  // namespace godwit::step_costs_test
