#include "eval/position_buckets.h"

#include <gtest/gtest.h>

namespace godwit::eval::position_buckets_test {
namespace {

TEST(PositionBuckets, AveragesWhatFallsIntoEach) {
  PositionBuckets buckets(/*tokens=*/10);
  buckets.Add(0, 1);
  buckets.Add(9, 2);
  buckets.Add(30, 7);
  buckets.Add(3, 6);  // a second text, from its beginning
  const auto table = buckets.Table();
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[0].begin, 0);
  EXPECT_EQ(table[0].end, 10);
  EXPECT_EQ(table[0].tokens, 3);
  EXPECT_EQ(table[0].nll, 3);
  EXPECT_EQ(table[1].begin, 30);
  EXPECT_EQ(table[1].end, 31);
  EXPECT_EQ(table[1].tokens, 1);
  EXPECT_EQ(table[1].nll, 7);
}

TEST(PositionBuckets, ShareTimeByTheirPositions) {
  PositionBuckets buckets(/*tokens=*/10);
  for (int64_t position = 0; position < 30; ++position) buckets.Add(position, 1);
  buckets.AddTime(0, 8, 16);
  buckets.AddTime(8, 24, 8);
  const auto table = buckets.Table();
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table[0].ms, 17);
  EXPECT_EQ(table[1].ms, 5);
  EXPECT_EQ(table[2].ms, 2);
}

TEST(PositionBuckets, DoubleByDefault) {
  PositionBuckets buckets(/*tokens=*/0);
  for (int64_t position = 0; position < 1000; ++position) buckets.Add(position, 1);
  const std::vector<int64_t> ends = {128, 256, 512, 1000};
  const auto table = buckets.Table();
  ASSERT_EQ(table.size(), ends.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    EXPECT_EQ(table[i].begin, i == 0 ? 0 : ends[i - 1]);
    EXPECT_EQ(table[i].end, ends[i]);
    EXPECT_EQ(table[i].tokens, table[i].end - table[i].begin);
  }
}

TEST(PositionBuckets, AreEmptyOrAsLongAsTheText) {
  EXPECT_TRUE(PositionBuckets(0).Table().empty());
  PositionBuckets one(INT64_MAX);
  one.Add(1 << 22, 1);
  ASSERT_EQ(one.Table().size(), 1u);
  EXPECT_EQ(one.Table()[0].end, (1 << 22) + 1);
}

}  // namespace
}  // namespace godwit::eval::position_buckets_test
