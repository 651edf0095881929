#include "base/turn_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <thread>
#include <vector>

namespace godwit::turn_line_test {
namespace {

using testing::ElementsAre;

// The costs of pieces that came one after the other, in the order of their turns.
std::vector<int64_t> TurnsOf(std::initializer_list<int64_t> costs) {
  TurnLine line;
  std::optional<TurnLine::Turn> held(line.Wait(0, nullptr));
  std::vector<int64_t> turns;
  std::vector<std::jthread> threads;
  for (const int64_t cost : costs) {
    threads.emplace_back([&, cost] {
      const auto turn = line.Wait(cost, nullptr);
      turns.push_back(cost);  // nobody else has one
    });
    while (line.waiting() < threads.size()) std::this_thread::yield();
  }
  held.reset();
  threads.clear();
  return turns;
}

TEST(TurnLineTest, SmallPiecesGoFirst) {
  EXPECT_THAT(TurnsOf({2000, 1000, 0, 0}), ElementsAre(0, 0, 1000, 2000));
}

TEST(TurnLineTest, LargeOnesDoNotWaitForEver) {
  EXPECT_THAT(TurnsOf({3, 0, 0, 0, 0, 0}), ElementsAre(0, 0, 3, 0, 0, 0));
}

TEST(TurnLineTest, CancelledWaiterLeavesTheLine) {
  TurnLine line;
  CancelToken cancel;
  cancel.Cancel();
  std::optional<TurnLine::Turn> held(line.Wait(0, &cancel));  // nothing was waited for
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
}  // namespace godwit::turn_line_test
