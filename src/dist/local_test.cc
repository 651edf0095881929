#include "dist/local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "base/error.h"
#include "base/test_support.h"

namespace godwit::local_test {
namespace {

using testing::HasSubstr;

// The error that ended each rank, or nothing.
std::vector<std::string> RunRanks(LocalWorld& world, int size,
                                  const std::function<void(Communicator&)>& work) {
  std::vector<std::string> errors(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto mine = world.Rank(rank);
      try {
        work(*mine);
      } catch (const Error& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

// All ranks exchange messages with all others in turns, and check each turn's values.
void Talk(Communicator& mine) {
  const int size = mine.size();
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<int> all(size);
    const int given = 100 * turn + mine.rank();
    mine.AllGather(std::as_bytes(std::span(&given, 1)), std::as_writable_bytes(std::span(all)),
                   nullptr);
    for (int rank = 0; rank < size; ++rank) {
      EXPECT_EQ(all[rank], 100 * turn + rank);
    }
    int told = mine.rank();
    mine.Broadcast(std::as_writable_bytes(std::span(&told, 1)), turn % size, nullptr);
    EXPECT_EQ(told, turn % size);
    mine.Barrier(nullptr);
    const int other = mine.rank() ^ 1;
    if (other >= size) continue;
    mine.Swap(std::as_bytes(std::span(&given, 1)), std::as_writable_bytes(std::span(&told, 1)),
              other, nullptr);
    EXPECT_EQ(told, 100 * turn + other);
  }
  if (mine.rank() == 0) {
    const int number = 7;
    mine.Send(std::as_bytes(std::span(&number, 1)), size - 1, nullptr);
  } else if (mine.rank() == size - 1) {
    int number = 0;
    mine.Receive(std::as_writable_bytes(std::span(&number, 1)), 0, nullptr);
    EXPECT_EQ(number, 7);
  }
}

TEST(LocalWorldTest, RanksHearEachOther) {
  for (const double delay_ms : {0.0, 0.2}) {
    LocalWorld world(4);
    world.Delay(delay_ms);
    for (const std::string& error : RunRanks(world, 4, Talk)) EXPECT_EQ(error, "");
  }
}

TEST(LocalWorldTest, LeavingRankIsNamedByAllOthers) {
  LocalWorld world(3);
  const auto errors = RunRanks(world, 3, [](Communicator& mine) {
    if (mine.rank() == 1) return mine.Leave("its disk is full");
    Talk(mine);
  });
  EXPECT_EQ(errors[0], "rank 1 has ended: its disk is full");
  EXPECT_EQ(errors[1], "");
  EXPECT_EQ(errors[2], errors[0]);
}

TEST(LocalWorldTest, SilentRankIsLost) {
  LocalWorld world(3);
  world.Silence(2);
  const auto errors = RunRanks(world, 3, Talk);
  // The rank that finds the loss first tells the other.
  for (const int rank : {0, 1}) {
    EXPECT_THAT(errors[rank], HasSubstr("rank 2 is lost"));
  }
}

TEST(LocalWorldTest, ACancelledRankEndsAll) {
  LocalWorld world(2);
  CancelToken cancel;
  cancel.Cancel();
  const auto errors = RunRanks(
      world, 2, [&](Communicator& mine) { mine.Barrier(mine.rank() == 0 ? &cancel : nullptr); });
  EXPECT_EQ(errors[0], "cancelled");
  EXPECT_EQ(errors[1], "rank 0 has ended: cancelled");
}

TEST(LocalWorldTest, RanksOutOfStepAreRefused) {
  LocalWorld world(2);
  const auto errors = RunRanks(world, 2, [&](Communicator& mine) {
    const std::vector<std::byte> frame(3 + mine.rank());
    std::vector<std::byte> all(2 * frame.size());
    mine.AllGather(frame, all, nullptr);
    mine.Barrier(nullptr);
  });
  EXPECT_THAT(errors[0], HasSubstr("rank 1 sent 4 bytes where rank 0 expected 3"));
  EXPECT_THAT(errors[1], HasSubstr("out of step"));
}

TEST(LocalWorldTest, FramesAreBounded) {
  LocalWorld world(1);
  const auto alone = world.Rank(0);
  const std::vector<std::byte> frame(Communicator::kMaxFrameBytes + 1);
  EXPECT_THAT(ErrorOf([&] { alone->Send(frame, 0, nullptr); }).what(), HasSubstr("the most is"));
}

}  // namespace
}  // namespace godwit::local_test
