#include "eval/distinct.h"

#include <gtest/gtest.h>

#include <vector>

namespace godwit::eval::distinct_test {
namespace {

TEST(Distinct, ShareIsThatOfDistinctNgrams) {
  const std::vector<int32_t> text = {1, 2, 1, 2, 1, 3};
  EXPECT_DOUBLE_EQ(DistinctShare(text, 1), 3 / 6.0);
  EXPECT_DOUBLE_EQ(DistinctShare(text, 2), 3 / 5.0);  // 12 21 12 21 13
  EXPECT_DOUBLE_EQ(DistinctShare(text, 3), 3 / 4.0);  // 121 212 121 213
  EXPECT_DOUBLE_EQ(DistinctShare(text, 6), 1);
  EXPECT_DOUBLE_EQ(DistinctShare(text, 7), 1);
  EXPECT_DOUBLE_EQ(DistinctShare({}, 1), 1);
  EXPECT_DOUBLE_EQ(DistinctShare(std::vector<int32_t>(100, 5), 2), 1 / 99.0);
}

}  // namespace
}  // namespace godwit::eval::distinct_test
