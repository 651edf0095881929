#include "eval/suites/bootstrap.h"

#include <gtest/gtest.h>

#include <vector>

namespace godwit::eval::bootstrap_test {
namespace {

TEST(BootstrapTest, EqualValuesHaveNoInterval) {
  const MeanInterval interval = Bootstrap(std::vector<double>(7, 0.5), 1);
  EXPECT_EQ(interval.mean, 0.5);
  EXPECT_EQ(interval.low, 0.5);
  EXPECT_EQ(interval.high, 0.5);
}

// The mean of 100 coins has a standard error of 0.05, so 95 % lie within about 1.96 of it.
TEST(BootstrapTest, TheIntervalIsThatOfTheNormalDistributionForManyValues) {
  std::vector<double> coins(100);
  for (size_t i = 0; i < coins.size(); ++i) coins[i] = i % 2 == 0 ? 1 : 0;
  const MeanInterval interval = Bootstrap(coins, 3);
  EXPECT_EQ(interval.mean, 0.5);
  EXPECT_NEAR(interval.low, 0.5 - 0.098, 0.021);
  EXPECT_NEAR(interval.high, 0.5 + 0.098, 0.021);
}

TEST(BootstrapTest, TheSeedDecides) {
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) values.push_back(i * i * 0.37);
  const MeanInterval one = Bootstrap(values, 1), same = Bootstrap(values, 1),
                     other = Bootstrap(values, 2);
  EXPECT_EQ(one.low, same.low);
  EXPECT_EQ(one.high, same.high);
  EXPECT_NE(one.low, other.low);
}

}  // namespace
}  // namespace godwit::eval::bootstrap_test
