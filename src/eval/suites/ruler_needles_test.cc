// The needle tasks of RULER: their exact words, and the number of needles of their parameters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/test_support.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::ruler_needles_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Essay() {
  std::string text;
  for (int i = 0; i < 900; ++i) text += fmt::format("Day {} went by. ", i);
  return text;
}

Sample Make(std::string_view task, uint64_t seed = 0, int64_t length = 3000) {
  return ByteSuite(FindSuite("ruler", task), {.seed = seed, .texts = {Essay()}})
      .Make({.length_tokens = length});
}

// How often `part` stands in the text.
int64_t Count(std::string_view text, std::string_view part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST(RulerTest, OneAnswerIsAskedForInTheSingular) {
  const std::string text = TextOf(Make("niah_single_1").prompt);
  EXPECT_THAT(text,
              StartsWith("A special magic number is hidden within the following text. Make sure "
                         "to memorize it. I will quiz you about the number afterwards.\n"));
  const std::string key = text.substr(text.find(" numbers for ") + 13);
  const std::string name = key.substr(0, key.find(' '));
  EXPECT_THAT(text, EndsWith(fmt::format(
                        "again.\nWhat is the special magic number for {0} mentioned in the "
                        "provided text? The special magic number for {0} mentioned "
                        "in the provided text is",
                        name)));
}

TEST(RulerTest, Golden) {
  EXPECT_EQ(TextOf(Make("niah_single_1", 0, 720).prompt),
            "A special magic number is hidden within the following text. Make sure to memorize it. "
            "I will quiz you about the number afterwards.\n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "One of the special magic numbers for idle-prism is: 9820312.\n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "What is the special magic number for idle-prism mentioned in the provided text? The "
            "special magic number for idle-prism mentioned in the provided text is");
  EXPECT_EQ(TextOf(Make("niah_multikey_2", 0, 720).prompt),
            "A special magic number is hidden within the following text. Make sure to memorize it. "
            "I will quiz you about the number afterwards.\n"
            "One of the special magic numbers for angry-banjo is: 7217926.\n"
            "One of the special magic numbers for autumn-needle is: 5625456.\n"
            "One of the special magic numbers for idle-prism is: 9820312.\n"
            "One of the special magic numbers for tired-piano is: 7934076.\n"
            "What is the special magic number for idle-prism mentioned in the provided text? The "
            "special magic number for idle-prism mentioned in the provided text is");
}

TEST(RulerTest, SeveralKeysAreAskedForTogether) {
  const std::string text = TextOf(Make("niah_multiquery").prompt);
  EXPECT_THAT(text,
              StartsWith("Some special magic numbers are hidden within the following text. Make "
                         "sure to memorize it. I will quiz you about the numbers afterwards.\n"));
  EXPECT_THAT(text, HasSubstr("\nWhat are all the special magic numbers for "));
  EXPECT_THAT(text, HasSubstr(", and "));
  EXPECT_THAT(text, EndsWith(" mentioned in the provided text are"));
}

TEST(RulerTest, EveryTaskHidesWhatItsParametersSay) {
  struct Counts {
    int64_t needles, expected;
  };
  const std::map<std::string_view, Counts> counts = {
      {"niah_single_1", {1, 1}},   {"niah_single_2", {1, 1}},   {"niah_single_3", {1, 1}},
      {"niah_multikey_1", {4, 1}}, {"niah_multivalue", {4, 4}}, {"niah_multiquery", {4, 4}}};
  for (const Suite& each : RulerNeedleSuites()) {
    const Suite* const suite = &each;
    const Sample sample = Make(suite->name);
    const std::string text = TextOf(sample.prompt);
    EXPECT_LE(std::ssize(sample.prompt) + 128, 3000);
    const auto found = counts.find(suite->name);
    const int64_t needles = Count(text, "One of the special magic ");
    if (found == counts.end()) {
      EXPECT_GT(needles, 15) << suite->name;  // the whole text
      EXPECT_EQ(sample.expected.size(), 1u);
    } else {
      EXPECT_EQ(needles, found->second.needles) << suite->name;
      EXPECT_EQ(std::ssize(sample.expected), found->second.expected) << suite->name;
    }
    ASSERT_EQ(sample.needles.size(), sample.expected.size());
    for (const std::string& value : sample.expected) {
      EXPECT_EQ(Count(text, value), 1) << suite->name;
      EXPECT_TRUE(std::ranges::any_of(sample.needles, [&](const TokenSpan& span) {
        return TextOf(std::span(sample.prompt).subspan(span.begin, span.end - span.begin))
                   .find(value) != std::string::npos;
      })) << suite->name;
    }
    EXPECT_EQ(sample.prompt, Make(suite->name).prompt);
    EXPECT_NE(sample.prompt, Make(suite->name, 1).prompt);
  }
}

TEST(RulerTest, TheShareThatIsFoundCounts) {
  const Suite& suite = FindSuite("ruler", "niah_multivalue");
  const Sample sample{.expected = {"1234567", "7654321", "ABC-def", "1111111"}};
  EXPECT_EQ(suite.score(" 1234567, abc-DEF and 1111111.", sample), 0.75);
  EXPECT_EQ(suite.score("", sample), 0);
}

}  // namespace
}  // namespace godwit::eval::ruler_needles_test
