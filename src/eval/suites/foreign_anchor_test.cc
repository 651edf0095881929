#include "eval/suites/foreign_anchor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/test_support.h"
#include "eval/suites/suite_test_support.h"

namespace godwit::eval::foreign_anchor_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int64_t kTokens = 64, kVocab = 256;

Sample With(std::string_view kind, uint64_t seed = 1) {
  Sample sample = ByteSuite(FindSuite("lines", "lines")).Make({.length_tokens = 2000, .depth = 50});
  ForeignAnchor(kind).PutBefore(sample, kTokens, ByteCoder(), kVocab, seed, /*index=*/0);
  return sample;
}

std::vector<int32_t> AnchorOf(const Sample& sample) {
  return {sample.prompt.begin(), sample.prompt.begin() + kTokens};
}

TEST(ForeignAnchorTest, StandsBeforeThePromptAndMovesIt) {
  const Sample plain =
      ByteSuite(FindSuite("lines", "lines")).Make({.length_tokens = 2000, .depth = 50});
  for (const char* kind : {"first", "shuffled", "random", "constant: the"}) {
    const Sample sample = With(kind);
    EXPECT_TRUE(std::ranges::equal(std::span(sample.prompt).subspan(kTokens), plain.prompt));
    EXPECT_EQ(sample.context_tokens, plain.context_tokens + kTokens);
    EXPECT_EQ(sample.needles[0].begin, plain.needles[0].begin + kTokens);
    EXPECT_EQ(sample.needles[0].end, plain.needles[0].end + kTokens);
    EXPECT_EQ(sample.prompt.front(), plain.prompt.front()) << "the frame";
  }
}

TEST(ForeignAnchorTest, HasTheTokensOfItsKind) {
  const Sample first = With("first");
  EXPECT_TRUE(
      std::ranges::equal(AnchorOf(first), std::span(first.prompt).subspan(kTokens, kTokens)));
  const auto own = AnchorOf(first);
  const auto shuffled = AnchorOf(With("shuffled"));
  EXPECT_NE(shuffled, own);
  EXPECT_TRUE(std::ranges::is_permutation(shuffled, own));
  EXPECT_NE(AnchorOf(With("shuffled", 2)), shuffled);
  const auto random = AnchorOf(With("random"));
  EXPECT_FALSE(std::ranges::is_permutation(random, own));
  EXPECT_LT(*std::ranges::max_element(random), kVocab + 1);
  const auto constant = AnchorOf(With("constant: the"));
  EXPECT_THAT(std::vector(constant.begin() + 1, constant.end()), Each('e'));
  for (const char* kind : {"", "constant:", "previous"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { ForeignAnchor{kind}; }),
                HasSubstr("first, shuffled, random or constant:TEXT"));
  }
}

}  // namespace
}  // namespace godwit::eval::foreign_anchor_test
