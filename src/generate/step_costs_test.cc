#include "generate/step_costs.h"

#include <gtest/gtest.h>

namespace godwit {
namespace {

TEST(StepCosts, LieOnALineBetweenWhatWasMeasured) {
  StepCosts costs;
  EXPECT_EQ(costs.Ms(1), 0);
  EXPECT_EQ(costs.Largest(), 0);
  costs.Set(4, 20);
  EXPECT_EQ(costs.Ms(1), 0) << "fewer rows are not known";
  costs.Set(1, 10);
  costs.Set(8, 40);
  EXPECT_EQ(costs.Ms(1), 10);
  EXPECT_DOUBLE_EQ(costs.Ms(2), 10 + 10 / 3.0);
  EXPECT_EQ(costs.Ms(4), 20);
  EXPECT_EQ(costs.Ms(6), 30);
  EXPECT_EQ(costs.Ms(64), 40) << "to be tried";
  EXPECT_EQ(costs.Largest(), 8);
  for (int i = 0; i < 2; ++i) costs.Record(512, 1);  // a prompt
  EXPECT_EQ(costs.Largest(), 8);
}

TEST(StepCosts, AnInterruptionAloneSaysNothing) {
  StepCosts costs;
  costs.Set(1, 10);
  costs.Record(2, 80);
  EXPECT_EQ(costs.Ms(2), 10) << "to be tried again";
  EXPECT_EQ(costs.Largest(), 1);
  costs.Record(2, 12);
  EXPECT_EQ(costs.Ms(2), 12);
}

TEST(StepCosts, FollowWhatChanges) {
  StepCosts costs;
  costs.Set(1, 10);
  costs.Set(4, 12);
  costs.Record(1, 1e6);  // interrupted
  EXPECT_LT(costs.Ms(1), 12);
  for (int i = 0; i < 200; ++i) costs.Record(1, 30);
  EXPECT_NEAR(costs.Ms(1), 30, 0.1);
  EXPECT_GT(costs.Ms(4), 13) << "the others drift along";
}

}  // namespace
}  // namespace godwit
