#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::babilong_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kStory =
    "1 John went to the garden.\n2 Mary went to the office.\n3 John moved to the kitchen.\n"
    "4 Where is Mary? \toffice\t2\n";
// The context's only other text, whose sentences are no longer than the facts.
constexpr const char* kBook =
    "It was late. The end came. All left. One came. It rained. Snow fell.";

class BabilongTest : public ::testing::Test {
 protected:
  Sample Make(const SamplePlace& place, uint64_t seed = 0) {
    const Suite& suite = FindSuite("babilong", "qa1");
    return ByteSuite(suite, {.seed = seed, .texts = {kBook}, .folder = folder_.path().string()})
        .Make(place);
  }
  // The text between the two marks.
  static std::string Context(const Sample& sample) {
    const std::string text = TextOf(sample.prompt);
    const size_t begin = text.rfind("<context>\n") + 10;
    return text.substr(begin, text.rfind("\n</context>") - begin);
  }

  const TempFolder folder_{{"qa1_one_test.txt", kStory}};
};

TEST_F(BabilongTest, FactsStandInTheirOrderAmongTheSentencesOfTheBook) {
  const Sample sample = Make({.length_tokens = 1020});
  const std::string text = TextOf(sample.prompt);
  EXPECT_THAT(text, StartsWith("I will give you context with the facts about positions of"));
  EXPECT_THAT(text,
              HasSubstr("</example>\n\nAlways return your answer in the following format: The "
                        "most recent location of ’person’ is ’location’. Do not write anything "
                        "else after that.\n\n<context>\n"));
  EXPECT_THAT(text, EndsWith("\n</context>\n\nQuestion: Where is Mary?"));
  EXPECT_EQ(Context(sample),
            "Snow fell. John went to the garden. It was late. The end came. All left. Mary went to "
            "the office. John moved to the kitchen. One came.");
  EXPECT_EQ(NeedleOf(sample), " Mary went to the office.");
  EXPECT_LE(std::ssize(sample.prompt) + 20, 1020);
}

TEST_F(BabilongTest, TheSeedDecides) {
  const SamplePlace place{.length_tokens = 1020};
  EXPECT_EQ(Make(place, 4).prompt, Make(place, 4).prompt);
  EXPECT_NE(Make(place, 4).prompt, Make(place, 5).prompt);
}

TEST_F(BabilongTest, MissingDataIsRefusedWithNumbers) {
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Make({.length_tokens = 1020, .index = 1}); }),
              HasSubstr("questions of at most 127 facts, which fit into samples of 1020 "
                        "tokens: expected 2 or more, found 1"));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { Make({.length_tokens = 3000}); }),
              HasSubstr("tokens of text to hide its needles in, and the text has "));
}

TEST_F(BabilongTest, TheScorerLooksForTheOnlyRoom) {
  const Suite& suite = FindSuite("babilong", "qa1");
  const Sample sample{.question = "Where is Mary?", .expected = {"office"}};
  EXPECT_EQ(suite.score(" The most recent location of Mary is office.", sample), 1);
  EXPECT_EQ(suite.score(" The office or the garden.", sample), 0);
}

// qa5 asks for people and things, the other tasks for rooms.
TEST_F(BabilongTest, EveryTaskHasItsLabels) {
  const Sample room{.question = "Q?", .expected = {"garden"}};
  const Sample name{.question = "Q?", .expected = {"Fred"}};
  for (const Suite* suite : SuitesOf("babilong")) {
    const bool is_qa5 = suite->name == "qa5";
    EXPECT_EQ(suite->score("garden", room), is_qa5 ? 0 : 1) << suite->name;
    EXPECT_EQ(suite->score("Fred", name), is_qa5 ? 1 : 0) << suite->name;
  }
}

}  // namespace
}  // namespace godwit::eval::babilong_test
