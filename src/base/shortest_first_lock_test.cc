#include "base/shortest_first_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <thread>
#include <vector>

namespace godwit::shortest_first_lock_test {
namespace {

using testing::ElementsAre;

// Costs of pieces that came one after the other, in the order of their turns.
std::vector<int64_t> TurnsOf(std::initializer_list<int64_t> costs) {
  ShortestFirstLock line;
  std::optional<ShortestFirstLock::Turn> held(line.Wait(0, nullptr));
  std::vector<int64_t> turns;
  std::vector<std::jthread> threads;
  for (const int64_t cost : costs) {
    threads.emplace_back([&, cost] {
      const auto turn = line.Wait(cost, nullptr);
      turns.push_back(cost);  // the only turn
    });
    while (line.waiting() < threads.size()) std::this_thread::yield();
  }
  held.reset();
  threads.clear();
  return turns;
}

TEST(ShortestFirstLockTest, SmallPiecesGoFirst) {
  EXPECT_THAT(TurnsOf({2000, 1000, 0, 0}), ElementsAre(0, 0, 1000, 2000));
}

TEST(ShortestFirstLockTest, LargeOnesDoNotWaitForEver) {
  EXPECT_THAT(TurnsOf({3, 0, 0, 0, 0, 0}), ElementsAre(0, 0, 3, 0, 0, 0));
}

TEST(ShortestFirstLockTest, CancelledWaiterLeavesTheLine) {
  ShortestFirstLock line;
  CancelToken cancel;
  cancel.Cancel();
  std::optional<ShortestFirstLock::Turn> held(line.Wait(0, &cancel));  // the turn was free
  try {
    line.Wait(0, &cancel);
    ADD_FAILURE() << "it is held";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
  EXPECT_EQ(line.waiting(), 0u);
  held.reset();
  line.Wait(0, nullptr);
}

}  // namespace
}  // namespace godwit::shortest_first_lock_test
