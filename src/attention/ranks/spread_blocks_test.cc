#include "attention/ranks/spread_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace godwit::spread_blocks_test {
namespace {

using testing::ElementsAre;

RankSpeed Taking(double key_seconds, int64_t kv_bytes = 1000) {
  return {.best_link = 1, .worst_link = 1, .key_seconds = key_seconds, .kv_bytes = kv_bytes};
}

TEST(SpreadBlocksTest, EqualRanksGetEqualShares) {
  EXPECT_THAT(SpreadEvenly(6, 3), ElementsAre(2, 2, 2));
  EXPECT_THAT(SpreadEvenly(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(SpreadEvenly(3, 3), ElementsAre(1, 1, 1));
}

std::vector<int64_t> BySpeed(int64_t blocks, std::vector<RankSpeed> speeds, int64_t block_bytes = 1,
                             bool first_together = true) {
  return SpreadBySpeed(blocks, speeds, block_bytes, first_together);
}

TEST(SpreadBlocksTest, SlowRanksGetFewerBlocks) {
  // Equally fast ranks get equal shares.
  EXPECT_THAT(BySpeed(4, {Taking(1), Taking(1)}), ElementsAre(2, 2));
  EXPECT_THAT(BySpeed(9, {Taking(1), Taking(1)}), ElementsAre(5, 4));
  // Besides the first block, ranks take equally long for 6, 6 and 3 blocks.
  EXPECT_THAT(BySpeed(16, {Taking(1), Taking(1), Taking(2)}), ElementsAre(7, 6, 3));
  EXPECT_THAT(BySpeed(7, {Taking(3), Taking(1), Taking(1)}), ElementsAre(2, 3, 2));
  EXPECT_THAT(BySpeed(7, {Taking(3), Taking(1), Taking(1)}, 1, /*first_together=*/false),
              ElementsAre(1, 3, 3));
  EXPECT_THAT(BySpeed(3, {Taking(1), Taking(50), Taking(1)}), ElementsAre(1, 1, 1));
  EXPECT_THAT(BySpeed(20, {Taking(1), Taking(50), Taking(1)}), ElementsAre(10, 1, 9));
}

TEST(SpreadBlocksTest, NoRankGetsMoreThanItHolds) {
  // The rank holds 5 blocks, two of which are the anchor and the question.
  EXPECT_THAT(BySpeed(10, {Taking(1), Taking(1, 50), Taking(1)}, 10), ElementsAre(4, 3, 3));
  EXPECT_THAT(BySpeed(13, {Taking(1), Taking(1, 59), Taking(1)}, 10), ElementsAre(5, 3, 5));
  EXPECT_THAT(BySpeed(13, {Taking(1), Taking(1, 60), Taking(1)}, 10), ElementsAre(5, 4, 4));
  // No rank has memory: blocks are spread as if all had it, and the lack is found later.
  EXPECT_THAT(BySpeed(9, {Taking(1, 0), Taking(1, 0), Taking(1, 0)}, 10), ElementsAre(3, 3, 3));
}

}  // namespace
}  // namespace godwit::spread_blocks_test
