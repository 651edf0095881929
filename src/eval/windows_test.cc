#include "eval/windows.h"

#include <gtest/gtest.h>

#include <string>

#include "base/test_support.h"

namespace godwit::eval::windows_test {
namespace {

// A line "0: 0-4 from 1" for each window: text 0, the tokens that it reads, and where scoring
// begins.
std::string Plan(const std::vector<int64_t>& text_tokens, const WindowOptions& options) {
  std::string lines;
  for (const Window& window : PlanWindows(text_tokens, options)) {
    lines += fmt::format("{}: {}-{} from {}\n", window.text, window.begin, window.end,
                         window.score_begin);
  }
  return lines;
}

TEST(PlanWindows, ATextIsOneWindow) {
  EXPECT_EQ(Plan({10}, {}), "0: 0-10 from 1\n");
  EXPECT_EQ(Plan({10}, {.framed = true}), "0: 0-10 from 0\n");
  EXPECT_EQ(Plan({10}, {.size = INT64_MAX, .framed = true}), "0: 0-10 from 0\n");
}

TEST(PlanWindows, LieSideBySideByDefault) {
  EXPECT_EQ(Plan({10}, {.size = 4, .framed = true}),
            "0: 0-4 from 0\n0: 4-8 from 4\n0: 8-10 from 8\n");
  // A token with nothing before it is not scored.
  EXPECT_EQ(Plan({10}, {.size = 4}), "0: 0-4 from 1\n0: 4-8 from 5\n0: 8-10 from 9\n");
  EXPECT_EQ(Plan({9}, {.size = 4}), "0: 0-4 from 1\n0: 4-8 from 5\n");
  EXPECT_EQ(Plan({8}, {.size = 4}), "0: 0-4 from 1\n0: 4-8 from 5\n");
}

TEST(PlanWindows, OverlapByTheStride) {
  EXPECT_EQ(Plan({10}, {.size = 4, .stride = 2}),
            "0: 0-4 from 1\n0: 2-6 from 4\n0: 4-8 from 6\n0: 6-10 from 8\n");
  EXPECT_EQ(Plan({9}, {.size = 4, .stride = 3, .framed = true}),
            "0: 0-4 from 0\n0: 3-7 from 4\n0: 6-9 from 7\n");
  EXPECT_EQ(Plan({5}, {.size = 3, .stride = 1}), "0: 0-3 from 1\n0: 1-4 from 3\n0: 2-5 from 4\n");
}

TEST(PlanWindows, EveryTextBeginsAnew) {
  EXPECT_EQ(Plan({3, 0, 1, 6}, {.size = 4}), "0: 0-3 from 1\n3: 0-4 from 1\n3: 4-6 from 5\n");
  EXPECT_EQ(Plan({3, 0, 1}, {.framed = true}), "0: 0-3 from 0\n2: 0-1 from 0\n");
  EXPECT_EQ(Plan({1}, {}), "");
  EXPECT_EQ(Plan({}, {}), "");
}

TEST(PlanWindows, TheLimitCountsScoredTokensAndReadsNoMore) {
  EXPECT_EQ(Plan({10}, {.max_tokens = 3}), "0: 0-4 from 1\n");
  EXPECT_EQ(Plan({10}, {.max_tokens = INT64_MAX}), "0: 0-10 from 1\n");
  EXPECT_EQ(Plan({10}, {.size = 4, .max_tokens = 4}), "0: 0-4 from 1\n0: 4-6 from 5\n");
  EXPECT_EQ(Plan({10}, {.size = 4, .stride = 2, .max_tokens = 4, .framed = true}),
            "0: 0-4 from 0\n");
  EXPECT_EQ(Plan({3, 6}, {.max_tokens = 3}), "0: 0-3 from 1\n1: 0-2 from 1\n");
}

TEST(PlanWindows, TheLastOfEachAlone) {
  EXPECT_EQ(Plan({10}, {.last = 3}), "0: 0-10 from 7\n");
  EXPECT_EQ(Plan({10}, {.size = 4, .last = 1}), "0: 0-4 from 3\n0: 4-8 from 7\n0: 8-10 from 9\n");
  EXPECT_EQ(Plan({10}, {.size = 4, .last = 9}), Plan({10}, {.size = 4}));
  EXPECT_EQ(Plan({8}, {.size = 4, .stride = 2, .last = 3, .framed = true}),
            "0: 0-4 from 1\n0: 2-6 from 4\n0: 4-8 from 6\n");
  EXPECT_EQ(Plan({20}, {.size = 8, .last = 2, .max_tokens = 3}),
            "0: 0-8 from 6\n0: 8-15 from 14\n");
}

TEST(PlanWindows, RefusesWhatMakesNoSense) {
  EXPECT_THROW(Plan({9}, {.last = -1}), Error);
  EXPECT_THROW(Plan({9}, {.size = -1}), Error);
  EXPECT_THROW(Plan({9}, {.size = 4, .stride = 5}), Error);
  EXPECT_THROW(Plan({9}, {.size = 4, .stride = -1}), Error);
  EXPECT_THROW(Plan({9}, {.stride = 1}), Error);
  EXPECT_THROW(Plan({9}, {.max_tokens = 0}), Error);
  EXPECT_THROW(Plan({9}, {.max_tokens = -2}), Error);
}

}  // namespace
}  // namespace godwit::eval::windows_test
