#include "generate/draft_worth.h"

#include <gtest/gtest.h>

namespace godwit::draft_worth_test {
namespace {

// The number of `all` steps of 1 ms in which a source with this cost and saving was asked.
int64_t AskedOf(int64_t all, double takes, double saves) {
  DraftWorth worth;
  int64_t asked = 0;
  for (int64_t step = 0; step < all; ++step) {
    if (!worth.rests()) {
      ++asked;
      worth.Spend(takes);
    }
    worth.EndStep(1, worth.rests() ? 0 : saves);
  }
  return asked;
}

TEST(DraftWorth, ProfitableSourceIsAlwaysAsked) {
  EXPECT_EQ(AskedOf(10'000, 0.2, 0.3), 10'000);
  EXPECT_EQ(AskedOf(10'000, 0.009, 0), 10'000) << "as good as nothing";
}

TEST(DraftWorth, LosingSourceIsTriedNowAndThen) {
  const int64_t asked = AskedOf(50'000, 0.2, 0.1);
  EXPECT_LT(asked, 50'000 / 15);
  EXPECT_GT(asked, 50'000 / 100);
}

// A text of a hundred steps loses only a few.
TEST(DraftWorth, VeryCostlySourceIsSoonDropped) {
  EXPECT_LE(AskedOf(50, 2, 0), 1);
  EXPECT_LE(AskedOf(100, 0.5, 0), 8);
  EXPECT_LE(AskedOf(100, 0.5, 0.4), 20 + 16);
}

// Two sources with the same offers are told apart from the first step on.
TEST(DraftWorth, TimeOfAStepIsKnownAtOnce) {
  DraftWorth worth;
  worth.Spend(3);
  EXPECT_EQ(worth.ms_per_step(), 3);
  worth.EndStep(10, 3);
  worth.Spend(1);
  worth.EndStep(10, 3);
  EXPECT_EQ(worth.ms_per_step(), 2);
  for (int step = 0; step < 100; ++step) {
    worth.Spend(0.5);
    worth.EndStep(10, 3);
  }
  EXPECT_EQ(worth.ms_per_step(), 0.5) << "of the last whole trial";
}

TEST(DraftWorth, SourceThatBecomesProfitableIsAskedAgain) {
  DraftWorth worth;
  for (int step = 0; step < 20'000; ++step) {
    if (!worth.rests()) worth.Spend(0.2);
    worth.EndStep(1, 0);
  }
  int64_t asked = 0;
  for (int step = 0; step < 5'000; ++step) {
    if (!worth.rests()) worth.Spend(0.2);
    asked += worth.rests() ? 0 : 1;
    worth.EndStep(1, worth.rests() ? 0 : 1);
  }
  EXPECT_GE(asked, 3'900);
}

}  // namespace
}  // namespace godwit::draft_worth_test
