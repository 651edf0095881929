#include "generate/suffix_index.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"

namespace godwit::suffix_index_test {
namespace {

// All earlier places where the text's end occurs, with the length of each match.
std::vector<SuffixIndex::Match> AllMatches(std::span<const int32_t> text) {
  std::vector<SuffixIndex::Match> matches;
  const int64_t end = std::ssize(text) - 1;
  for (int64_t place = end - 1; place >= 0; --place) {
    int32_t same = 0;
    while (same < SuffixIndex::kLongest && same <= place &&
           text[place - same] == text[end - same]) {
      ++same;
    }
    if (same > 0) matches.push_back({static_cast<int32_t>(place), same});
  }
  return matches;
}

TEST(SuffixIndex, FindsWhatATextHadBefore) {
  std::vector<int32_t> text;
  SuffixIndex index;
  std::vector<SuffixIndex::Match> found;
  int64_t longest = 0;
  for (int64_t i = 0; i < 5000; ++i) {
    // New tokens, and copies of 40 tokens from anywhere.
    const bool copies = i > 100 && i / 40 % 3 == 0;
    const auto from = static_cast<size_t>(RandomBits(2, 0, i / 40, 0) % 100);
    const auto token = static_cast<int32_t>(RandomBits(1, 0, i, 0) % 500);
    text.push_back(copies ? text[from + static_cast<size_t>(i % 40)] : token);
    index.Extend(text);
    index.Find(text, 32, found);
    const auto all = AllMatches(text);
    EXPECT_LE(found.size(), 32u);
    for (const auto& match : found) {  // each match is exact
      const auto known = std::ranges::find(all, match.position, &SuffixIndex::Match::position);
      ASSERT_NE(known, all.end());
      EXPECT_EQ(match.tokens, known->tokens);
    }
    // No long match is missed.
    const auto best = std::ranges::max_element(all, {}, &SuffixIndex::Match::tokens);
    if (best == all.end() || best->tokens < 8) continue;
    longest = std::max<int64_t>(longest, best->tokens);
    ASSERT_FALSE(found.empty());
    EXPECT_GE(std::ranges::max(found, {}, &SuffixIndex::Match::tokens).tokens, 8);
  }
  EXPECT_EQ(longest, SuffixIndex::kLongest);
}

TEST(SuffixIndex, ManyAtOnceAreAsOneByOne) {
  std::vector<int32_t> text;
  for (int64_t i = 0; i < 3000; ++i) {
    text.push_back(static_cast<int32_t>(RandomBits(3, 0, i, 0) % 20));
  }
  SuffixIndex at_once, one_by_one;
  at_once.Extend(text);
  for (size_t i = 0; i <= text.size(); ++i) one_by_one.Extend(std::span(text).first(i));
  std::vector<SuffixIndex::Match> a, b;
  at_once.Find(text, 32, a);
  one_by_one.Find(text, 32, b);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].position, b[i].position);
  // Another text, a shorter one.
  text.assign(50, 7);
  at_once.Extend(text);
  at_once.Find(text, 32, a);
  EXPECT_EQ(a.front().position, 48);
  EXPECT_EQ(a.front().tokens, SuffixIndex::kLongest);
}

TEST(SuffixIndex, ShortTextsHaveNoMatches) {
  SuffixIndex index;
  std::vector<SuffixIndex::Match> found;
  for (const std::vector<int32_t>& text : {std::vector<int32_t>{}, {1}, {1, 2}, {1, 2, 3}}) {
    index.Extend(text);
    index.Find(text, 32, found);
    EXPECT_TRUE(found.empty());
  }
}

}  // namespace
}  // namespace godwit::suffix_index_test
