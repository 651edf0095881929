#include "eval/suites/answers.h"

#include <gtest/gtest.h>

namespace godwit::eval::answers_test {
namespace {

TEST(AnswersTest, DigitsAreTheFirstOrTheLastThatThereAre) {
  EXPECT_EQ(FirstDigits(" 01234. 01234 is the"), "01234");
  EXPECT_EQ(LastDigits("line 7 is <2416>."), "2416");
  EXPECT_EQ(FirstDigits("none"), "");
  EXPECT_EQ(LastDigits("none"), "");
  EXPECT_EQ(LastDigits("12"), "12");
}

// InfiniteBench's rule: once marks are blanks, the value stands between blanks.
TEST(AnswersTest, AValueIsAWordOfTheAnswer) {
  EXPECT_TRUE(HasWord("\"d1ff29be-4e2a\"}", "d1ff29be-4e2a"));
  EXPECT_TRUE(HasWord("It is d1ff29be-4e2a.", "d1ff29be-4e2a"));
  EXPECT_FALSE(HasWord("d1ff29be-4e2a0", "d1ff29be-4e2a"));
  EXPECT_FALSE(HasWord("(d1ff29be-4e2a)", "d1ff29be-4e2a"));  // no such mark in the original
  EXPECT_FALSE(HasWord("", "d1ff29be-4e2a"));
}

// The rule of BABILong's compare_answers.
TEST(AnswersTest, TheTargetIsTheOnlyLabelOfTheFirstSentence) {
  constexpr std::string_view kRooms[] = {"garden", "kitchen", "office"};
  const auto right = [&](std::string_view answer, std::string_view question = "Where is Mary?") {
    return IsOnlyLabel(answer, "kitchen", question, kRooms);
  };
  EXPECT_TRUE(right(" The most recent location of Mary is Kitchen. She was in the garden."));
  EXPECT_TRUE(right("kitchen<context> garden"));
  EXPECT_FALSE(right("the kitchen or the garden"));
  EXPECT_FALSE(right("the garden"));
  EXPECT_FALSE(right("nowhere. The kitchen"));
  EXPECT_FALSE(right("the kitchen beside the post office"));  // also within a word
  EXPECT_TRUE(right("from the kitchen to the garden", "Where was Mary before the garden?"));
  EXPECT_FALSE(right("the kitchen", "Where was Mary before the kitchen?"));
}

// The rules of RULER's string_match_all and string_match_part.
TEST(AnswersTest, ExpectedAnswersAreLookedForInAnyCaseAlsoWithinAWord) {
  const std::vector<std::string> expected = {"France", "in France", "Normandy"};
  EXPECT_EQ(ShareFound(" It is normandy, in\001France.", expected), 2.0 / 3);
  EXPECT_EQ(ShareFound("in FRANCE", {"france", "in France"}), 1);
  EXPECT_EQ(ShareFound("", expected), 0);
  EXPECT_EQ(AnyFound(" Frances is right", expected), 1);
  EXPECT_EQ(AnyFound("Spain", expected), 0);
  EXPECT_EQ(AnyFound("a\tb", {"a\nb"}), 1);  // control characters are newlines
}

}  // namespace
}  // namespace godwit::eval::answers_test
