#include "attention/policies/prefill_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

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

// The paper's block, in whole tiles.
TEST(PrefillSpecTest, ABlockMayBeAQuarterOfTheContext) {
  const PrefillSpec open = ParsePrefill("star:block=quarter");
  EXPECT_TRUE(open.quarter);
  EXPECT_EQ(open.ToString(), "star:block=quarter");
  for (const auto& [context, block] : {std::pair<int64_t, int64_t>{0, 64},
                                       {1, 64},
                                       {256, 64},
                                       {257, 128},
                                       {4096, 1024},
                                       {131072, 32768},
                                       {1000000, 32768}}) {
    const PrefillSpec spec = open.For(context);
    EXPECT_FALSE(spec.quarter);
    EXPECT_EQ(spec.ToString(), fmt::format("star:block={0},anchor={0}", block)) << context;
  }
  const PrefillSpec more = ParsePrefill("star:anchor=100,block=quarter,overlap=70,tail=9");
  EXPECT_EQ(more.ToString(), "star:block=quarter,anchor=100,overlap=70,tail=9");
  EXPECT_EQ(ParsePrefill(more.ToString()).For(4096).ToString(),
            "star:block=1024,anchor=100,overlap=70,tail=9");
  EXPECT_EQ(more.For(100).ToString(), "star:block=64,anchor=64,overlap=64,tail=9");
  EXPECT_THAT(more.Explain(), HasSubstr("a quarter"));
  const PrefillSpec given = ParsePrefill("star:block=8K");
  EXPECT_EQ(given.For(100).ToString(), given.ToString());
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [] { ParsePrefill("star:block=quarter,block=4"); }),
              HasSubstr("expected one block, found a quarter and 4 tokens"));
  for (const char* spec : {"block=quarter,", "block=quarter,block=quarter", "anchor=quarter"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParsePrefill(fmt::format("star:{}", spec)); }),
                HasSubstr("or block=quarter, found"))
        << spec;
  }
}

// Distances of an anchor: AnchorPlace less the key's position.
TEST(PrefillSpecTest, AnAnchorMayStandElsewhere) {
  const PrefillSpec previous = ParsePrefill("star:block=10,at=previous,tail=3");
  EXPECT_EQ(previous.ToString(), "star:block=10,anchor=10,tail=3,at=previous");
  EXPECT_EQ(previous.AnchorPlace(15), 15) << "the first block is the previous one";
  EXPECT_EQ(previous.AnchorPlace(20), 10);
  EXPECT_EQ(previous.AnchorPlace(59), 19);
  const PrefillSpec random = ParsePrefill("star:block=10,at=random");
  EXPECT_EQ(random.ToString(), "star:block=10,anchor=10,at=random");
  std::set<int64_t> offsets;
  for (int64_t block = 1; block < 40; ++block) {
    const int64_t offset = 10 * block - random.AnchorPlace(10 * block);
    EXPECT_GE(offset, 0);
    EXPECT_LE(offset, 10 * (block - 1)) << "before the block";
    EXPECT_EQ(10 * block + 9 - random.AnchorPlace(10 * block + 9), offset);
    offsets.insert(offset);
  }
  EXPECT_GT(offsets.size(), 30u);
  const PrefillSpec foreign = ParsePrefill("star:foreign,block=10");
  EXPECT_EQ(foreign.ToString(), "star:block=10,anchor=10,foreign");
  EXPECT_EQ(foreign.anchored_from(), 20);
  EXPECT_EQ(foreign.AnchorPlace(45), 35) << "as at the beginning of the text";
  EXPECT_EQ(ParsePrefill("star:foreign,block=10,at=previous").AnchorPlace(45), 15);
  for (const char* spec :
       {"star:at=random,overlap=4", "star:foreign,by-speed", "star:at=previous,anchor=0"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParsePrefill(spec); }),
                HasSubstr("an anchor in another place"));
  }
  for (const char* spec : {"star:foreign,anchor=4", "star:foreign,block=quarter"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParsePrefill(spec); }),
                HasSubstr("a foreign anchor takes the place of the first block"));
  }
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

TEST(PrefillSpecTest, LetsAGpuRead) {
  const PrefillSpec spec = ParsePrefill("gpu");
  EXPECT_TRUE(spec.on_gpu);
  EXPECT_EQ(spec.ToString(), "gpu");
  EXPECT_FALSE(spec.star());
  EXPECT_EQ(spec.window, INT64_MAX);
  EXPECT_THAT(spec.Explain(), HasSubstr("each token sees all before it"));
  EXPECT_FALSE(ParsePrefill("window:4").on_gpu);
  for (const char* other : {"gpu:", "gpus", "gpu:1"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ParsePrefill(other); }),
                HasSubstr(fmt::format("found \"{}\"", other)));
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
  EXPECT_THAT(refused("star:at=random,at=previous"), HasSubstr("found \"at=previous\""));
  EXPECT_THAT(refused("star:at=first"), HasSubstr("found \"at=first\""));
  EXPECT_THAT(refused("star:block=3,block=4"), HasSubstr("found \"block=4\""));
  EXPECT_THAT(refused("star:block=0"), HasSubstr("a block of at least 1 token"));
  EXPECT_THAT(refused("star:block=10,anchor=11"), HasSubstr("longer than a block of 10"));
  EXPECT_THAT(refused("star:block=10,overlap=11"), HasSubstr("overlap of 11 tokens is longer"));
}

}  // namespace
}  // namespace godwit::prefill_spec_test
