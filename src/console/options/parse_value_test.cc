#include "console/options/parse_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/test_support.h"
#include "godwit/error.h"

namespace godwit::console::parse_value_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(ParseInt, TakesTheWholeTextAndTheRange) {
  EXPECT_EQ(ParseInt("-1", -1, INT64_MAX), -1);
  EXPECT_EQ(ParseInt("+7", 0, 10), 7);
  EXPECT_EQ(ParseInt("010", 0, 100), 10);  // not octal
  for (const char* bad :
       {"", " 1", "1 ", "1.5", "0x10", "1e3", "abc", "11", "-2", "+-1", "99999999999999999999"}) {
    EXPECT_THROW(ParseInt(bad, -1, 10), Error) << bad;
  }
}

TEST(ParseFloat, TakesTheWholeText) {
  EXPECT_EQ(ParseFloat("0.5"), 0.5f);
  EXPECT_EQ(ParseFloat("-1e-3"), -1e-3f);
  for (const char* bad : {"", "0,5", "1.0x", "--1", "1e999"}) {
    EXPECT_THROW(ParseFloat(bad), Error) << bad;
  }
}

TEST(ParseBytes, CountsMemoryAsItIsShown) {
  EXPECT_EQ(ParseBytes("65536"), 65536);
  EXPECT_EQ(ParseBytes("8G"), int64_t{8} << 30);
  EXPECT_EQ(ParseBytes("8g"), int64_t{8} << 30);
  EXPECT_EQ(ParseBytes("1.5GiB"), int64_t{3} << 29);
  EXPECT_EQ(ParseBytes("512Mi"), int64_t{512} << 20);
  EXPECT_EQ(ParseBytes("3K"), 3072);
  EXPECT_EQ(ParseBytes("1T"), int64_t{1} << 40);
  // GB means 10^9 to some and 2^30 to others.
  for (const char* bad : {"", "0", "-1G", "G", "8 G", "8GB", "8B", "8Gx", "8GG", "inf", "nan",
                          "1e30", "9999999T", "all"}) {
    EXPECT_THROW(ParseBytes(bad), Error) << bad;
  }
}

TEST(ParseBool, KnowsTheUsualWords) {
  EXPECT_TRUE(ParseBool("1"));
  EXPECT_TRUE(ParseBool("true"));
  EXPECT_FALSE(ParseBool("off"));
  EXPECT_THROW(ParseBool("maybe"), Error);
}

TEST(ParseTokens, TakesListsAndJsonLists) {
  EXPECT_THAT(ParseTokens("1,2,3"), ElementsAre(1, 2, 3));
  EXPECT_THAT(ParseTokens(" [1, 2,\n3] "), ElementsAre(1, 2, 3));
  EXPECT_THAT(ParseTokens("-5"), ElementsAre(-5));  // refused once the vocabulary is known
  EXPECT_THAT(ParseTokens("[]"), ElementsAre());
  for (const char* bad : {"1,,2", "1,", "a", "1 2", "[1,2", "2147483648"}) {
    EXPECT_THROW(ParseTokens(bad), Error) << bad;
  }
}

TEST(ParseLogitBias, TakesLlamaCppsNotation) {
  std::map<int32_t, float> biases;
  ParseLogitBias("15043+1", biases);
  ParseLogitBias("7-0.5, 9-inf", biases);
  ParseLogitBias("15043+1", biases);
  EXPECT_THAT(biases, ElementsAre(Pair(7, -0.5f), Pair(9, -INFINITY), Pair(15043, 1.0f)));
  EXPECT_THROW(ParseLogitBias("15043-2", biases), Error);
  for (const char* bad : {"", "5", "+1", "a+1", "5+", "5+-1", "5+x", "5=1"}) {
    EXPECT_THROW(ParseLogitBias(bad, biases), Error) << bad;
  }
}

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

TEST(IntList, RefusesMalformedLists) {
  for (const char* text : {"", ",", "1,", "x", "1-", "4-1", "-1", "1-4+0", "1-4*1", "0-8*2", "1-4+",
                           "1-2000", "5000", "1-5000", "1-4+x", "1-2-3"}) {
    EXPECT_EQ(ErrorOf([&] { ParseIntList(text, 0, 4096); }).kind(), ErrorKind::kInput) << text;
  }
}

}  // namespace
}  // namespace godwit::console::parse_value_test
