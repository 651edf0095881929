#include "eval/suites/answers.h"

#include <gtest/gtest.h>

namespace godwit::eval {
namespace {

TEST(AnswersTest, DigitsAreTheFirstOrTheLastThatThereAre) {
  EXPECT_EQ(FirstDigits(" 01234. 01234 is the"), "01234");
  EXPECT_EQ(LastDigits("line 7 is <2416>."), "2416");
  EXPECT_EQ(FirstDigits("none"), "");
  EXPECT_EQ(LastDigits("none"), "");
  EXPECT_EQ(LastDigits("12"), "12");
}

// InfiniteBench's own way of looking: the value stands between blanks once marks are blanks.
TEST(AnswersTest, AValueIsAWordOfTheAnswer) {
  EXPECT_TRUE(HasWord("\"d1ff29be-4e2a\"}", "d1ff29be-4e2a"));
  EXPECT_TRUE(HasWord("It is d1ff29be-4e2a.", "d1ff29be-4e2a"));
  EXPECT_FALSE(HasWord("d1ff29be-4e2a0", "d1ff29be-4e2a"));
  EXPECT_FALSE(HasWord("(d1ff29be-4e2a)", "d1ff29be-4e2a"));  // no such mark in the original
  EXPECT_FALSE(HasWord("", "d1ff29be-4e2a"));
}

}  // namespace
}  // namespace godwit::eval
