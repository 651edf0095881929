#include "console/terminal/format.h"

#include <gtest/gtest.h>

#include <cmath>

#include "console/terminal/progress_line.h"

namespace godwit::console::format_test {
namespace {

TEST(Format, Durations) {
  EXPECT_EQ(FormatDuration(0), "0:00");
  EXPECT_EQ(FormatDuration(6.2), "0:07");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
  EXPECT_EQ(FormatDuration(INFINITY), "1000:00:00");
}

TEST(Format, RatesAndCounts) {
  EXPECT_EQ(FormatRate(3.417), "3.42");
  EXPECT_EQ(FormatRate(51.27), "51.3");
  EXPECT_EQ(FormatRate(1280.4), "1280");
  EXPECT_EQ(FormatCount(812), "812");
  EXPECT_EQ(FormatCount(118080), "118 K");
  EXPECT_EQ(FormatCount(8030261248), "8.03 B");
  EXPECT_EQ(Plural(1, "token"), "1 token");
  EXPECT_EQ(Plural(0, "token"), "0 tokens");
}

std::string Line(const std::string& label, ProgressUnit unit, const ProgressState& state) {
  return FormatProgress(label, unit, state, LeftMs(unit, state));
}

TEST(Format, Progress) {
  EXPECT_EQ(Line("reading", ProgressUnit::kTokens,
                 {.done = 512, .total = 2048, .updated_ms = 2000, .elapsed_ms = 2000}),
            "reading: 512 of 2048 tokens, 25%, 256 tokens/s, 0:06 left");
  EXPECT_EQ(Line("reading", ProgressUnit::kTokens,
                 {.done = 100, .total = 200, .start = 100, .updated_ms = 2000, .elapsed_ms = 2000}),
            "reading: 100 of 200 tokens, 50%");
  EXPECT_EQ(Line("reading", ProgressUnit::kTokens,
                 {.done = 9216,
                  .total = 20'000,
                  .start = 8192,
                  .updated_ms = 2000,
                  .elapsed_ms = 2000,
                  .left_ms = 60'000,
                  .is_reading = true}),
            "reading: 9216 of 20000 tokens (8192 from the cache), 46%, 512 tokens/s, 1:00 left");
  EXPECT_EQ(Line("reading", ProgressUnit::kTokens,
                 {.done = 512,
                  .total = 20'000,
                  .updated_ms = 2000,
                  .elapsed_ms = 2000,
                  .is_reading = true}),
            "reading: 512 of 20000 tokens, 2%, 256 tokens/s");
  EXPECT_EQ(Line("loading m", ProgressUnit::kBytes,
                 {.done = 1 << 30, .total = 4LL << 30, .updated_ms = 2000, .elapsed_ms = 2000}),
            "loading m: 1.0 GiB of 4.0 GiB, 25%, 512.0 MiB/s, 0:06 left");
  EXPECT_EQ(Line("loading m", ProgressUnit::kBytes, {.elapsed_ms = 3000}), "loading m: 0:03");
  EXPECT_EQ(Line("measuring", ProgressUnit::kTests,
                 {.done = 1, .total = 4, .updated_ms = 2000, .elapsed_ms = 2000}),
            "measuring: 1 of 4 tests, 25%");
  EXPECT_EQ(Line("answering", ProgressUnit::kRequests,
                 {.done = 30, .total = 50, .start = 10, .updated_ms = 2000, .elapsed_ms = 2000}),
            "answering: 30 of 50 requests, 60%, 10.0 requests/s, 0:02 left");
}

// Without reports the time left falls second by second, and finally becomes unknown.
TEST(Format, ProgressCountsDown) {
  const auto left_ms = [](double elapsed_ms, std::optional<double> left_ms = {}) {
    return LeftMs(
        ProgressUnit::kTokens,
        {.done = 1, .total = 4, .updated_ms = 2000, .elapsed_ms = elapsed_ms, .left_ms = left_ms});
  };
  EXPECT_EQ(left_ms(2000), 6000);
  EXPECT_EQ(left_ms(5000), 3000);
  EXPECT_EQ(left_ms(8000), std::nullopt);
  EXPECT_EQ(left_ms(5000, 60'000), 57'000);
}

TEST(Format, ACountdownWaitsForLongerEstimates) {
  Countdown countdown;
  EXPECT_EQ(countdown.Next(std::nullopt), std::nullopt);
  EXPECT_EQ(countdown.Next(5000), 5000);
  EXPECT_EQ(countdown.Next(4000), 4000);
  EXPECT_EQ(countdown.Next(4500), 4000);
  EXPECT_EQ(countdown.Next(4100), 4000);
  EXPECT_EQ(countdown.Next(3900), 3900);
  EXPECT_EQ(countdown.Next(std::nullopt), std::nullopt);
  EXPECT_EQ(countdown.Next(2000), 2000);
}

}  // namespace
}  // namespace godwit::console::format_test
