#include "eval/fact_passages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/test_support.h"

namespace godwit::eval::fact_passages_test {
namespace {

using testing::HasSubstr;

std::vector<int32_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

std::string Book() {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += "Sentence " + std::to_string(i) + " is here." + (i % 5 == 4 ? "\n" : " ");
  }
  return text;
}

TEST(FactPassagesTest, EachHasItsFactAlone) {
  for (const bool alike : {false, true}) {
    const FactPassageOptions options{.count = 24, .tokens = 300, .alike = alike, .seed = 3};
    const auto passages = MakeFactPassages(Book(), options, Bytes);
    ASSERT_EQ(passages.size(), 24u);
    std::set<std::string> questions;
    for (const FactPassage& passage : passages) {
      questions.insert(passage.question);
      EXPECT_NEAR(static_cast<double>(passage.text.size()), 300, 100) << passage.text;
      const auto has = [&](const FactPassage& other) {
        return other.text.find(passage.answer) != std::string::npos;
      };
      EXPECT_EQ(std::ranges::count_if(passages, has), 1) << passage.answer;
      EXPECT_TRUE(has(passage));
      EXPECT_EQ(passage.question.starts_with("What is the secret code of the "), alike);
    }
    EXPECT_EQ(questions.size(), 24u);
    EXPECT_EQ(MakeFactPassages(Book(), options, Bytes)[7].text, passages[7].text);
    FactPassageOptions other = options;
    other.seed = 4;
    EXPECT_NE(MakeFactPassages(Book(), other, Bytes)[7].text, passages[7].text);
  }
}

TEST(FactPassagesTest, WholeSentencesAroundTheFact) {
  const auto passages = MakeFactPassages(Book(), {.count = 3, .tokens = 120}, Bytes);
  for (const FactPassage& passage : passages) {
    EXPECT_TRUE(passage.text.ends_with(". ") || passage.text.ends_with(".\n")) << passage.text;
    EXPECT_TRUE(passage.text.starts_with("Sentence ") || passage.text.starts_with("The "))
        << passage.text;
  }
}

TEST(FactPassagesTest, Refusals) {
  const auto refused = [](const FactPassageOptions& options) {
    return ErrorOf(ErrorKind::kInput, [&] { MakeFactPassages(Book(), options, Bytes); });
  };
  EXPECT_THAT(refused({.count = 25}), HasSubstr("1 to 24 passages"));
  EXPECT_THAT(refused({.count = 20, .tokens = 4000}), HasSubstr("too short for 20 passages"));
}

TEST(FactPassagesTest, EachIsAskedAboutOnceBeforeAnyIsAgain) {
  const auto orders = DrawOrders(10, 5, 1);
  ASSERT_EQ(orders.size(), 10u);
  for (const size_t round : {0, 5}) {
    std::set<size_t> asked;
    for (size_t i = round; i < round + 5; ++i) {
      asked.insert(orders[i].asked);
      std::vector<size_t> sorted = orders[i].order;
      std::ranges::sort(sorted);
      EXPECT_EQ(sorted, (std::vector<size_t>{0, 1, 2, 3, 4}));
    }
    EXPECT_EQ(asked.size(), 5u);
  }
  EXPECT_NE(orders[0].order, orders[1].order);
  EXPECT_EQ(DrawOrders(10, 5, 1)[3].order, orders[3].order);
}

}  // namespace
}  // namespace godwit::eval::fact_passages_test
