#include "attention/policies/prefill_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::prefill_spec_test {
namespace {

using ::testing::HasSubstr;

TEST(PrefillSpecTest, SaysWhatARowOfTheContextSees) {
  const PrefillSpec window = ParsePrefill("window:1K");
  EXPECT_EQ(window.window, 1025);
  EXPECT_FALSE(window.star());
  EXPECT_EQ(window.ToString(), "window:1024");

  const auto expect_star = [](const char* text, int64_t block, int64_t anchor) {
    const PrefillSpec spec = ParsePrefill(text);
    EXPECT_TRUE(spec.star()) << text;
    EXPECT_EQ(spec.block, block) << text;
    EXPECT_EQ(spec.anchor, anchor) << text;
    EXPECT_EQ(spec.ToString(), fmt::format("star:block={},anchor={}", block, anchor));
    EXPECT_EQ(ParsePrefill(spec.ToString()).anchor, anchor);
  };
  expect_star("star", 32768, 32768);
  expect_star("star:", 32768, 32768);
  expect_star("star:block=16K", 16384, 16384);
  expect_star("star:anchor=0", 32768, 0);
  expect_star("star:anchor=5,block=7", 7, 5);
  const PrefillSpec overlapping = ParsePrefill("star:block=8K,overlap=1K");
  EXPECT_EQ(overlapping.overlap, 1024);
  EXPECT_EQ(overlapping.ToString(), "star:block=8192,anchor=8192,overlap=1024");
  EXPECT_THAT(overlapping.Explain(), HasSubstr("and the 1024 before that"));
  const PrefillSpec tailed = ParsePrefill("star:tail=1K,block=8K");
  EXPECT_EQ(tailed.tail, 1024);
  EXPECT_EQ(tailed.ToString(), "star:block=8192,anchor=8192,tail=1024");
  EXPECT_THAT(tailed.Explain(), HasSubstr("the last 1024 of the context"));
  EXPECT_FALSE(tailed.by_speed);
  const PrefillSpec by_speed = ParsePrefill("star:by-speed,block=8K");
  EXPECT_TRUE(by_speed.by_speed);
  EXPECT_EQ(by_speed.ToString(), "star:block=8192,anchor=8192,by-speed");
  EXPECT_TRUE(ParsePrefill(by_speed.ToString()).by_speed);
}

TEST(PrefillSpecTest, SaysHowManyTokensRanksReadTogether) {
  EXPECT_EQ(ParsePrefill("ring").ring, 2048);
  const PrefillSpec ring = ParsePrefill("ring:chunk=4K");
  EXPECT_EQ(ring.ring, 4096);
  EXPECT_FALSE(ring.star());
  EXPECT_EQ(ring.ToString(), "ring:chunk=4096");
  for (const char* spec : {"ring:", "ring:4K", "ring:chunk=", "ring:chunk=0", "ring:chunk=100",
                           "ring:chunk=2M", "rings"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParsePrefill(spec); }),
                HasSubstr(fmt::format("found \"{}\"", spec)));
  }
}

TEST(PrefillSpecTest, RefusesWhatIsNoWindow) {
  for (const char* spec : {"", "window", "window:", "window:0", "window:-1", "window:4+4",
                           "window:1x", "window:K", "dense", "sinks:4+4", "64", "stars"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParsePrefill(spec); }),
                HasSubstr(fmt::format("found \"{}\"", spec)));
  }
}

TEST(PrefillSpecTest, RefusesWhatIsNoStar) {
  const auto refused = [](const char* spec) {
    return ErrorOf(ErrorKind::kInput, [&] { ParsePrefill(spec); });
  };
  for (const char* setting :
       {"32K", "block", "block=", "block=x", "size=3", "block=-1", "tail=", "by-speed=1"}) {
    EXPECT_THAT(refused(fmt::format("star:{}", setting).c_str()),
                HasSubstr(fmt::format("found \"{}\"", setting)));
  }
  EXPECT_THAT(refused("star:block=3,"), HasSubstr("found \"\""));
  EXPECT_THAT(refused("star:by-speed,by-speed"), HasSubstr("found \"by-speed\""));
  EXPECT_THAT(refused("star:block=3,block=4"), HasSubstr("found \"block=4\""));
  EXPECT_THAT(refused("star:block=0"), HasSubstr("a block of at least 1 token"));
  EXPECT_THAT(refused("star:block=10,anchor=11"), HasSubstr("longer than a block of 10"));
  EXPECT_THAT(refused("star:block=10,overlap=11"), HasSubstr("overlap of 11 tokens is longer"));
}

}  // namespace
}  // namespace godwit::prefill_spec_test
