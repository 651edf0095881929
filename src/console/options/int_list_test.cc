#include "console/options/int_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"

namespace godwit::console {
namespace {

using ::testing::ElementsAre;

TEST(IntList, NumbersAndRanges) {
  EXPECT_THAT(ParseIntList("512", 0, 1024), ElementsAre(512));
  EXPECT_THAT(ParseIntList("512,0,7", 0, 1024), ElementsAre(512, 0, 7));
  EXPECT_THAT(ParseIntList("1-4", 1, 10), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ParseIntList("0-64+16", 0, 100), ElementsAre(0, 16, 32, 48, 64));
  EXPECT_THAT(ParseIntList("0-63+16", 0, 100), ElementsAre(0, 16, 32, 48));
  EXPECT_THAT(ParseIntList("1024-8192*2,5", 0, 8192), ElementsAre(1024, 2048, 4096, 8192, 5));
  EXPECT_THAT(ParseIntList("3-3", 0, INT64_MAX), ElementsAre(3));
  EXPECT_THAT(ParseIntList("9223372036854775806-9223372036854775807", 0, INT64_MAX),
              ElementsAre(INT64_MAX - 1, INT64_MAX));
}

TEST(IntList, WhatIsRefused) {
  for (const char* text : {"", ",", "1,", "x", "1-", "4-1", "-1", "1-4+0", "1-4*1", "0-8*2", "1-4+",
                           "1-2000", "5000", "1-5000", "1-4+x", "1-2-3"}) {
    EXPECT_EQ(ErrorOf([&] { ParseIntList(text, 0, 4096); }).kind(), ErrorKind::kInput) << text;
  }
}

}  // namespace
}  // namespace godwit::console
