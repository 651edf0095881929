// Every suite: its exact prompt, its needle's place, and the answers that it accepts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/ascii.h"
#include "base/split_text.h"
#include "base/test_support.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::suites_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Case {
  const char* verb;
  const char* name;
  int64_t length;
  const char* question;  // its beginning
  bool is_list = false;
};
constexpr Case kCases[] = {
    {"passkey", "passkey", 1000, "\n\nWhat is the pass key?\n\nThe pass key is"},
    {"passkey", "number-string", 1000, "\n\nWhat is the "},
    {"needle", "needle", 800, "\n\nWhat is the special magic "},
    {"kv-retrieval", "kv-retrieval", 1200, "\n\nKey: \"", /*is_list=*/true},
    {"lines", "lines", 1500, "\nNow the record is over. ", /*is_list=*/true}};

const Suite& SuiteOf(const Case& one) { return FindSuite(one.verb, one.name); }

class EverySuite : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Suites, EverySuite, ::testing::ValuesIn(kCases));

TEST(SuitesTest, EachHasItsCase) {
  size_t suites = 0;
  for (const char* verb : {"passkey", "needle", "kv-retrieval", "lines"}) {
    suites += SuitesOf(verb).size();
  }
  EXPECT_EQ(suites, std::size(kCases));
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [] { FindSuite("passkey", "pass"); }),
              HasSubstr("unknown task \"pass\"; there are: passkey, number-string"));
}

TEST_P(EverySuite, NeverExceedsItsLength) {
  ByteSuite suite(SuiteOf(GetParam()));
  for (int64_t length = GetParam().length; length < GetParam().length + 200; length += 7) {
    for (const double depth : {0.0, 33.0, 100.0}) {
      const Sample sample = suite.Make({.length_tokens = length, .depth = depth});
      EXPECT_LE(std::ssize(sample.prompt) + sample.max_new_tokens, length);
      // One more piece would not fit: a line of noise, a pair, or a line with its longest name.
      EXPECT_GT(std::ssize(sample.prompt) + sample.max_new_tokens, length - 140);
    }
  }
}

TEST_P(EverySuite, TheNeedleHoldsTheAnswerAndStandsAtItsDepth) {
  ByteSuite suite(SuiteOf(GetParam()));
  const int64_t length = 6 * GetParam().length;
  int64_t last = -1;
  for (const double depth : {0.0, 25.0, 50.0, 75.0, 100.0}) {
    const Sample sample = suite.Make({.length_tokens = length, .depth = depth});
    ASSERT_EQ(sample.needles.size(), 1u);
    EXPECT_THAT(NeedleOf(sample), HasSubstr(sample.expected.front()));
    const int64_t begin = sample.needles[0].begin;
    EXPECT_GT(begin, last);
    last = begin;
    const double share = static_cast<double>(begin) / static_cast<double>(sample.prompt.size());
    EXPECT_NEAR(share, depth / 100, 0.12);
    // The needle stands nowhere else.
    std::string text = TextOf(sample.prompt);
    text.erase(static_cast<size_t>(begin) - 1, NeedleOf(sample).size());
    EXPECT_EQ(text.find(sample.expected.front()), std::string::npos);
  }
}

TEST_P(EverySuite, TheRightAnswerScoresAndAWrongOneDoesNot) {
  const Suite& suite = SuiteOf(GetParam());
  const Sample sample =
      ByteSuite(suite).Make({.length_tokens = GetParam().length, .depth = 50, .index = 1});
  EXPECT_EQ(suite.score(" " + sample.expected.front() + ".", sample), 1);
  EXPECT_EQ(suite.score(" 123456789", sample), 0);
  EXPECT_EQ(suite.score("", sample), 0);
}

TEST_P(EverySuite, SeedAndIndexDecideLengthAndDepthDoNot) {
  const Suite& suite = SuiteOf(GetParam());
  const int64_t length = GetParam().length;
  const auto expected = [&](uint64_t seed, SamplePlace place) {
    return ByteSuite(suite, {.seed = seed}).Make(place).expected;
  };
  const auto one = expected(5, {.length_tokens = length, .depth = 0});
  EXPECT_EQ(one, expected(5, {.length_tokens = 3 * length, .depth = 0}));
  EXPECT_NE(one, expected(5, {.length_tokens = length, .depth = 0, .index = 1}));
  EXPECT_NE(one, expected(6, {.length_tokens = length, .depth = 0}));
}

TEST_P(EverySuite, OverlongSampleIsRefusedWithNumbers) {
  EXPECT_THAT(
      ErrorOf(ErrorKind::kInput,
              [&] { ByteSuite(SuiteOf(GetParam())).Make({.length_tokens = 50, .depth = 0}); }),
      AllOf(HasSubstr("a sample of 50 tokens is too short"), HasSubstr("which take ")));
}

// All depths of a list have one context.
TEST_P(EverySuite, TheQuestionIsBehindTheContext) {
  ByteSuite suite(SuiteOf(GetParam()));
  const int64_t length = 3 * GetParam().length;
  const Sample first = suite.Make({.length_tokens = length, .depth = 0});
  const Sample last = suite.Make({.length_tokens = length, .depth = 100});
  for (const Sample* const sample : {&first, &last}) {
    ASSERT_GT(sample->context_tokens, sample->needles.at(0).end - 1);
    const std::string question = TextOf(std::span(sample->prompt).subspan(sample->context_tokens));
    EXPECT_TRUE(question.starts_with(GetParam().question)) << question;
  }
  if (!GetParam().is_list) return;
  EXPECT_EQ(first.context_tokens, last.context_tokens);
  EXPECT_TRUE(std::equal(first.prompt.begin(), first.prompt.begin() + first.context_tokens,
                         last.prompt.begin()));
}

// The template strips messages, as many do.
TEST_P(EverySuite, InAChatTheTemplateStandsAroundTheMessage) {
  const int64_t length = 2 * GetParam().length;
  ByteSuite suite(SuiteOf(GetParam()), {}, [](const std::string& message) {
    return fmt::format("<u>{}<a>\n", Stripped(message));
  });
  const SamplePlace place{.length_tokens = length, .depth = 50};
  const Sample sample = suite.Make(place);
  const std::string text = TextOf(sample.prompt);
  EXPECT_LE(std::ssize(sample.prompt) + sample.max_new_tokens, length);
  EXPECT_GT(std::ssize(sample.prompt) + sample.max_new_tokens, length - 140);
  EXPECT_TRUE(text.starts_with("<u>"));
  const size_t end = text.find("<a>\n");
  ASSERT_NE(end, std::string::npos);
  EXPECT_FALSE(IsSpace(text[end - 1]));
  EXPECT_NE(text[end + 4], '\n');  // the answer begins with it elsewhere
  EXPECT_THAT(NeedleOf(sample), HasSubstr(sample.expected.front()));
  EXPECT_EQ(sample.expected, ByteSuite(SuiteOf(GetParam())).Make(place).expected);
}

TEST(SuitesTest, ATemplateThatHidesTheMessageIsRefused) {
  ByteSuite suite(SuiteOf(kCases[0]), {}, [](const std::string&) { return "Hello"; });
  EXPECT_THAT(
      ErrorOf(ErrorKind::kUnsupported, [&] { suite.Make({.length_tokens = 1000, .depth = 0}); }),
      HasSubstr("chat template changes messages"));
}

std::string TextOfSample(const Case& one, int64_t length, double depth, SuiteInputs inputs = {}) {
  return TextOf(ByteSuite(SuiteOf(one), std::move(inputs))
                    .Make({.length_tokens = length, .depth = depth})
                    .prompt);
}

TEST(SuitesTest, GoldenPasskey) {
  EXPECT_EQ(TextOfSample(kCases[0], 430, 100),
            "There is an important info hidden inside a lot of irrelevant text. Find it and "
            "memorize them. I will quiz you about the important information there.\n\n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "The pass key is 96944. Remember it. 96944 is the pass key.\n"
            "\n\nWhat is the pass key?\n\nThe pass key is");
}

TEST(SuitesTest, GoldenNumberString) {
  EXPECT_EQ(TextOfSample(kCases[1], 400, 0),
            "There is an important info hidden inside a lot of irrelevant text. Find it. I will "
            "quiz you about the important information there.\n\n"
            "The sequence of digits is 4722677777. Remember it. 4722677777 is the sequence of "
            "digits.\n"
            "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back "
            "again.\n"
            "\n\nWhat is the sequence of digits?\n\nThe sequence of digits is");
}

TEST(SuitesTest, GoldenNeedleInATextOfTheUser) {
  EXPECT_EQ(TextOfSample(kCases[2], 246, 50, {.texts = {"It was  late. Mr. Fox slept. The end."}}),
            "It was late. The special magic Sydney number is: 2068042. Mr. Fox slept.\n\n"
            "What is the special magic Sydney number? Don't give information outside the document "
            "or repeat your findings.\n\nThe special magic Sydney number is:");
}

TEST(SuitesTest, GoldenKvRetrieval) {
  EXPECT_EQ(TextOfSample(kCases[3], 430, 100),
            "Extract the value corresponding to the specified key in the JSON object below.\n\n"
            "JSON data:\n"
            "{\"74644bde-f58f-439f-bc1e-1e4f451b8dae\": \"3f6dd5fb-75e5-4d0e-8c19-8ba0bfe58fda\", "
            "\"a7df484c-0ea2-4dec-b72d-96fbd6351f8e\": \"a1bf7a99-bd7a-4287-b159-fd5c39f50af0\"}"
            "\n\nKey: \"a7df484c-0ea2-4dec-b72d-96fbd6351f8e\"\n"
            "The value associated with the specified key is: ");
}

TEST(SuitesTest, GoldenLines) {
  EXPECT_EQ(
      TextOfSample(kCases[4], 700, 50),
      "Below is a record of lines I want you to remember. Each line begins with 'line <line "
      "index>' and contains a '<REGISTER_CONTENT>' at the end of the line as a numerical "
      "value. For each line index, memorize its corresponding <REGISTER_CONTENT>. At the end "
      "of the record, I will ask you to retrieve the corresponding <REGISTER_CONTENT> of a "
      "certain line index. Now the record start:\n\n"
      "line direct-paper: REGISTER_CONTENT is <29889>\n"
      "line foggy-falcon: REGISTER_CONTENT is <36054>\n"
      "line dizzy-water: REGISTER_CONTENT is <34013>\n\n"
      "Now the record is over. Tell me what is the <REGISTER_CONTENT> in line foggy-falcon? I "
      "need the number.\nline foggy-falcon: REGISTER_CONTENT is");
}

}  // namespace
}  // namespace godwit::eval::suites_test
