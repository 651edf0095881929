#include "dist/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "base/test_support.h"
#include "dist/local.h"

namespace godwit::placement_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int> Ranks(Communicator& group, int mine) {
  std::vector<int> all(group.size());
  group.AllGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                  nullptr);
  return all;
}

TEST(Placement, NeighboursShareWeightsAndPlacesShareTexts) {
  LocalWorld world(6);
  std::vector<std::vector<int>> tensor(6), context(6), sent(6);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 6; ++rank) {
    threads.emplace_back([&, rank] {
      const Placement placement = Place(world.Rank(rank), 2);
      EXPECT_EQ(placement.part(), rank % 2);
      EXPECT_EQ(placement.parts(), 2);
      EXPECT_EQ(placement.context->rank(), rank / 2);
      EXPECT_EQ(placement.context->NameOf(1), "rank " + std::to_string(2 + rank % 2));
      tensor[rank] = Ranks(*placement.tensor, rank);
      context[rank] = Ranks(*placement.context, rank);
      const std::vector<int> mine = {10 * rank, 10 * rank + 1, 10 * rank + 2};
      sent[rank].resize(3);
      placement.context->AllToAll(std::as_bytes(std::span(mine)),
                                  std::as_writable_bytes(std::span(sent[rank])), nullptr);
      EXPECT_EQ(placement.all->sent_bytes(),
                placement.tensor->sent_bytes() + placement.context->sent_bytes());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(tensor[3], ElementsAre(2, 3));
  EXPECT_THAT(tensor[4], ElementsAre(4, 5));
  EXPECT_THAT(context[0], ElementsAre(0, 2, 4));
  EXPECT_THAT(context[5], ElementsAre(1, 3, 5));
  EXPECT_THAT(sent[2], ElementsAre(1, 21, 41));
}

TEST(Placement, SharesWeightsAmongAllOrNone) {
  LocalWorld world(3);
  const auto all = world.Rank(1);
  const Placement weights = Place(all, 3), texts = Place(all, 1), alone = Place(nullptr, 1);
  EXPECT_EQ(weights.tensor, all);
  EXPECT_EQ(weights.context, nullptr);
  EXPECT_EQ(texts.tensor, nullptr);
  EXPECT_EQ(texts.context, all);
  EXPECT_EQ(alone.parts(), 1);
  for (const int wrong : {2, 0, -1}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Place(all, wrong); }),
                HasSubstr("3 ranks cannot share the weights in groups of"));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Place(nullptr, 2); }), HasSubstr("1 rank cannot"));
}

// A rank that leaves one group has left all.
TEST(Placement, LeavingAGroupLeavesAll) {
  LocalWorld world(4);
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      const Placement placement = Place(world.Rank(rank), 2);
      if (rank == 3) return placement.tensor->Leave("its disk is full");
      errors[rank] = ErrorOf(ErrorKind::kIo, [&] {
        placement.tensor->Barrier(nullptr);
        placement.context->Barrier(nullptr);
      });
      EXPECT_TRUE(placement.all->left());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int rank : {0, 1, 2}) EXPECT_EQ(errors[rank], "rank 3 has ended: its disk is full");
}

}  // namespace
}  // namespace godwit::placement_test
