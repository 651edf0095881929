#include "dist/link_rate.h"

#include <gtest/gtest.h>

#include <thread>

#include "dist/local.h"

namespace godwit::link_rate_test {
namespace {

TEST(LinkRateTest, EveryPairIsMeasured) {
  for (const int size : {1, 2, 3, 4, 6}) {
    LocalWorld world(size);
    world.Delay(1);  // so that no frame of 4 MiB takes less
    std::vector<std::vector<double>> rates(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] { rates[rank] = MeasureLinks(*world.Rank(rank)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t rank = 0; rank < rates.size(); ++rank) {
      ASSERT_EQ(rates[rank].size(), rates.size());
      for (size_t other = 0; other < rates.size(); ++other) {
        if (other == rank) {
          EXPECT_EQ(rates[rank][other], 0);
        } else {
          EXPECT_GT(rates[rank][other], 0) << rank << " and " << other;
          EXPECT_LT(rates[rank][other], (4 << 20) / 0.001);
        }
      }
    }
  }
}

}  // namespace
}  // namespace godwit::link_rate_test
