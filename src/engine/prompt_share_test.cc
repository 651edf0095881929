#include "engine/prompt_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/test_support.h"

namespace godwit::prompt_share_test {
namespace {

// A machine on which a step of writers with `rows` prompt rows takes step_ms(rows).
struct Machine {
  std::function<double(int64_t rows)> step_ms;
};

struct Shares {
  double mean_ms = 0;     // of a step of the writers
  double longest_ms = 0;  // of a step of the writers
  int64_t rows = 0;       // of prompts
};

Shares Take(PromptShare& share, const Machine& machine, int steps, int64_t writers = 1) {
  Shares shares;
  for (int i = 0; i < steps; ++i) {
    const int64_t rows = share.Rows(writers, 511);
    const double ms = machine.step_ms(rows);
    share.RecordStep(ms, rows);
    shares.mean_ms += ms / steps;
    shares.longest_ms = std::max(shares.longest_ms, ms);
    shares.rows += rows;
  }
  return shares;
}

TEST(PromptShare, PromptsComeFirstWithoutDecodeOrLimit) {
  PromptShare share(2);
  EXPECT_EQ(share.Rows(0, 512), 512);
  PromptShare unlimited(0);
  EXPECT_EQ(unlimited.Rows(3, 509), 509);
}

// Weights are read once for all rows, so the first rows cost nothing, and more rows are tried.
TEST(PromptShare, AStepTakesTwiceWhatWritersTakeAlone) {
  PromptShare share(2);
  const Machine machine{
      [](int64_t rows) { return std::max(100.0, 4.0 * static_cast<double>(rows)); }};
  Take(share, machine, 50);
  const Shares shares = Take(share, machine, 200);
  EXPECT_LE(shares.mean_ms, 200);
  EXPECT_GT(shares.mean_ms, 180) << "what they may have they get";
  EXPECT_LT(shares.longest_ms, 300);
  EXPECT_GT(shares.rows, 200 * 40);
}

TEST(PromptShare, PromptsMaySlowDecodeByAnyFactor) {
  for (const double slowdown : {1.1, 1.5, 4.0}) {
    PromptShare share(slowdown);
    const Machine machine{[](int64_t rows) { return 100 + 1.0 * static_cast<double>(rows); }};
    Take(share, machine, 50);
    const Shares shares = Take(share, machine, 400);
    EXPECT_LE(shares.mean_ms, 100 * slowdown * 1.01);
    EXPECT_GT(shares.mean_ms, 100 * (1 + (slowdown - 1) * 0.75));
  }
}

// Behind a long context, a few rows take longer than many steps of a small model.
TEST(PromptShare, RowsThatTakeLongWaitForTheStepsThatPayForThem) {
  PromptShare share(2);
  const Machine machine{[](int64_t rows) { return 1 + 0.5 * static_cast<double>(rows); }};
  Take(share, machine, 50);
  const Shares shares = Take(share, machine, 400);
  EXPECT_LE(shares.mean_ms, 2.01);
  EXPECT_GT(shares.mean_ms, 1.8);
  EXPECT_LE(shares.longest_ms, 1 + 0.5 * 17);
}

TEST(PromptShare, FollowsAContextThatGrows) {
  PromptShare share(2);
  double row_ms = 0.1;
  const Machine machine{[&](int64_t rows) {
    row_ms *= 1.005;
    return 20 + row_ms * static_cast<double>(rows);
  }};
  const Shares shares = Take(share, machine, 900);
  EXPECT_GT(row_ms, 8);
  EXPECT_LE(shares.mean_ms, 40.5);
  EXPECT_GT(shares.mean_ms, 35);
}

// A step that the machine interrupted does not cost prompts their turn for long.
TEST(PromptShare, AnInterruptedStepIsNotHeldAgainstPrompts) {
  PromptShare share(2);
  const Machine machine{[](int64_t rows) { return 10 + 0.5 * static_cast<double>(rows); }};
  Take(share, machine, 50);
  while (share.Rows(1, 511) == 0) share.RecordStep(10, 0);
  share.RecordStep(1e6, 16);
  EXPECT_GT(Take(share, machine, 60).rows, 100);
}

TEST(PromptShare, MeasuresAgainWhenMoreTextsDecode) {
  PromptShare share(2);
  Take(share, {[](int64_t rows) { return 10 + 0.5 * static_cast<double>(rows); }}, 50);
  EXPECT_EQ(share.Rows(5, 511), 0);
  share.RecordStep(40, 0);
  const Shares shares =
      Take(share, {[](int64_t rows) { return 40 + 0.5 * static_cast<double>(rows); }}, 100,
           /*writers=*/5);
  EXPECT_GT(shares.mean_ms, 70);
  EXPECT_LE(shares.mean_ms, 80.5);
}

TEST(PromptShare, EndOfAPromptMayBeSmallerThanAShare) {
  PromptShare share(2);
  Take(share, {[](int64_t rows) { return 10 + 0.5 * static_cast<double>(rows); }}, 50);
  int steps = 0;
  while (share.Rows(1, 3) == 0 && ++steps < 40) share.RecordStep(10, 0);
  EXPECT_LT(steps, 40);
  EXPECT_LE(share.Rows(1, 3), 3);
}

TEST(PromptShare, InvalidSharesAreRefused) {
  for (const double bad : {1.0, -1.0, 101.0, 0.5}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { CheckPromptSlowdown(bad); }),
                testing::HasSubstr("expected 1.1 to 100"));
  }
  CheckPromptSlowdown(0);
  CheckPromptSlowdown(1.1);
}

}  // namespace
}  // namespace godwit::prompt_share_test
