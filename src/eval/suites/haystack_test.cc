#include "eval/suites/haystack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_support.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::haystack_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class HaystackTest : public ::testing::Test {
 protected:
  Sample Buried(Haystack hay, std::vector<std::string> needles, std::vector<double> depths,
                int64_t length) {
    Sample sample;
    HideIn(pieces_, hay,
           {.words = {.before = "Before.\n", .question = "\nAft", .answer = "er"},
            .needles = std::move(needles),
            .depths = std::move(depths),
            .max_new_tokens = 2},
           length, sample);
    return sample;
  }
  Haystack Words() const {
    return Haystack::Sentences(pieces_, {"One a. Two b.  Three\nc. Four d!"});
  }

  const StreamCoder coder_ = ByteCoder();
  const PieceMaker pieces_{coder_};
};

// The tokens beside the hay are 17: the frame, 8 bytes before, 6 after and 2 of the answer.
TEST_F(HaystackTest, TheHayIsAsLongAsFitsAndNeverLonger) {
  for (int64_t length = 17; length < 60; ++length) {
    const Sample sample = Buried(Haystack::Lines(pieces_, "green"), {}, {}, length);
    EXPECT_LE(std::ssize(sample.prompt) + 2, length);
    EXPECT_GT(std::ssize(sample.prompt) + 2, length - 6);
  }
}

TEST_F(HaystackTest, NeedlesStandBehindThePieceThatEndsAtTheirDepth) {
  const int64_t length = 17 + 4 * 3 + 2 * 2;
  const auto text = [&](double first, double second) {
    const Sample sample =
        Buried(Haystack::Lines(pieces_, "hh"), {"x", "y"}, {first, second}, length);
    EXPECT_EQ(NeedleOf(sample, 0), "x\n");
    EXPECT_EQ(NeedleOf(sample, 1), "y\n");
    return TextOf(sample.prompt);
  };
  EXPECT_EQ(text(0, 100), "Before.\nx\nhh\nhh\nhh\nhh\ny\n\nAfter");
  EXPECT_EQ(text(25, 75), "Before.\nhh\nx\nhh\nhh\ny\nhh\n\nAfter");
  EXPECT_EQ(text(24, 50), "Before.\nx\nhh\nhh\ny\nhh\nhh\n\nAfter");
  EXPECT_EQ(text(100, 100), "Before.\nhh\nhh\nhh\nhh\nx\ny\n\nAfter");
}

TEST_F(HaystackTest, SentencesAreABlankApart) {
  const int64_t length = 17 + 7 + 7 + 9 + 3;
  const Sample first = Buried(Words(), {"N."}, {0}, length);
  EXPECT_EQ(TextOf(first.prompt), "Before.\nN. One a. Two b. Three c.\nAfter");
  EXPECT_EQ(NeedleOf(first), "N.");
  const Sample middle = Buried(Words(), {"N."}, {50}, length);
  EXPECT_EQ(TextOf(middle.prompt), "Before.\nOne a. N. Two b. Three c.\nAfter");
  EXPECT_EQ(NeedleOf(middle), " N.");
}

TEST_F(HaystackTest, OverlongSampleIsRefusedWithNumbers) {
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput, [&] { Buried(Haystack::Lines(pieces_, "hh"), {"xyz"}, {0}, 20); }),
      HasSubstr("a sample of 20 tokens is too short for its question, needles and answer, "
                "which take 21"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Buried(Words(), {}, {}, 100); }),
              HasSubstr("a sample of 100 tokens needs 83 tokens of text to hide its needles in, "
                        "and the text has 31"));
}

TEST(SentencesTest, TitlesEndNoneAndBlanksAreOne) {
  EXPECT_THAT(
      SentencesOf("Mr. Holmes\n  came.\tHe said, \"Go!\" “Yes.” J. Watson went. No end"),
      ElementsAre("Mr. Holmes came.", "He said, \"Go!\"", "“Yes.”", "J. Watson went.", "No end"));
  EXPECT_THAT(SentencesOf(" \n"), ElementsAre());
  std::string words;
  for (int i = 0; i < 500; ++i) words += "word ";
  for (const std::string& sentence : SentencesOf(words)) EXPECT_LE(sentence.size(), 604u);
}

}  // namespace
}  // namespace godwit::eval::haystack_test
