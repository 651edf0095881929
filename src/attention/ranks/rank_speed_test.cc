#include "attention/ranks/rank_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "attention/attention_test_support.h"
#include "dist/local.h"

namespace godwit::rank_speed_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::vector<RankSpeed>> Measure(LocalWorld& world, int ranks,
                                            const AttentionGeometry& geometry) {
  std::vector<std::vector<RankSpeed>> speeds(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      ThreadPool pool(2);
      Workspace workspace;
      const Exec exec{
          .pool = pool, .kernels = *kernels::SelectIsa("").table, .workspace = workspace};
      speeds[rank] = MeasureRanks(*world.Rank(rank), exec, geometry, DType::kI8, 100 + rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return speeds;
}

TEST(RankSpeedTest, EveryRankKnowsTheSameSpeeds) {
  AttentionGeometry learned = TestGeometry(4, 2, 16, 0, {0, 0});
  learned.learned_positions = 20;
  for (const AttentionGeometry& geometry : {TestGeometry(4, 2, 16, 16, {0, 9}), learned,
                                            WithValuesInKeys(TestGeometry(4, 1, 28, 8, {0, 9}))}) {
    LocalWorld world(3);
    world.Delay(10);  // so that no link sends 4 MiB in less than 10 ms
    const auto speeds = Measure(world, 3, geometry);
    for (const auto& one : speeds) {
      ASSERT_EQ(one.size(), 3u);
      for (size_t rank = 0; rank < 3; ++rank) {
        EXPECT_GT(one[rank].worst_link, 0);
        EXPECT_LE(one[rank].worst_link, one[rank].best_link);
        EXPECT_LT(one[rank].best_link, (4 << 20) / 0.01);
        EXPECT_GT(one[rank].key_seconds, 0);
        EXPECT_EQ(one[rank].key_seconds, speeds[0][rank].key_seconds);
        EXPECT_EQ(one[rank].kv_bytes, 100 + static_cast<int64_t>(rank));
      }
    }
  }
  LocalWorld alone(1);
  EXPECT_TRUE(Measure(alone, 1, learned)[0].empty());
}

TEST(RankSpeedTest, SlowRankIsNamed) {
  const RankSpeed usual{.best_link = 1.2e9, .worst_link = 1e9, .key_seconds = 1e-9};
  // Rank `far` has slow links and is the worst link of the others.
  const RankSpeed far{.best_link = 0.12e9, .worst_link = 0.1e9, .key_seconds = 1e-9};
  const RankSpeed beside_far{.best_link = 1.2e9, .worst_link = 0.1e9, .key_seconds = 1e-9};
  const RankSpeed weak{.best_link = 1.2e9, .worst_link = 1e9, .key_seconds = 5e-9};
  LocalWorld world(4);
  const auto ranks = world.Rank(0);
  const auto slow = [&](std::vector<RankSpeed> speeds) { return SlowRanks(*ranks, speeds); };
  EXPECT_THAT(slow({}), ElementsAre());
  EXPECT_THAT(slow({usual, usual, usual, usual}), ElementsAre());
  EXPECT_THAT(slow({beside_far, beside_far, far, beside_far}),
              ElementsAre(HasSubstr("rank 2 is reached with 114.4 MiB/s at best, which takes 10 "
                                    "times as long")));
  EXPECT_THAT(slow({usual, weak}),
              ElementsAre(HasSubstr("rank 1 is slow: its attention takes 5 times as long")));
  // Two ranks share one link: neither is slower to reach than the other.
  EXPECT_THAT(slow({far, far}), ElementsAre());
  // If half of the ranks are slow, the others wait for them, too.
  EXPECT_EQ(slow({usual, weak, weak, usual}).size(), 2u);
}

}  // namespace
}  // namespace godwit::rank_speed_test
