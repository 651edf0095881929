#include "generate/ngram_table_drafts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace godwit::ngram_table_drafts_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<int32_t> TokensOf(const std::vector<DraftOffer>& offers) {
  std::vector<int32_t> tokens;
  for (const DraftOffer& offer : offers) tokens.push_back(offer.token);
  return tokens;
}

// The offers behind a path from the text's last token on.
std::vector<int32_t> Behind(NgramTableDrafts& drafts, std::vector<int32_t> path) {
  std::vector<DraftNode> tree;
  for (int32_t i = 0; i < static_cast<int32_t>(path.size()); ++i) {
    tree.push_back({.token = path[i], .parent = i - 1, .depth = i, .reach = 1});
  }
  std::vector<DraftOffer> offers;
  drafts.Offer(path, tree, static_cast<int32_t>(path.size()) - 1, offers);
  for (const DraftOffer& offer : offers) EXPECT_LT(offer.kind, std::ssize(drafts.Priors()));
  return TokensOf(offers);
}

TEST(NgramTableDrafts, OffersTheMostFrequentOnes) {
  NgramTableDrafts drafts({.n = 3, .k = 2});
  drafts.Follow(std::vector{1, 2, 3, 1, 2, 4, 1, 5, 6, 1, 2, 4, 1});
  EXPECT_THAT(Behind(drafts, {1}), ElementsAre(2)) << "1 2 4 twice, 1 2 3 once; 1 5 6 is third";
  EXPECT_THAT(Behind(drafts, {1, 2}), ElementsAre(4, 3));
  EXPECT_THAT(Behind(drafts, {1, 5}), IsEmpty());
  EXPECT_THAT(Behind(drafts, {1, 2, 4}), IsEmpty()) << "an n-gram has three tokens";
  EXPECT_THAT(Behind(drafts, {9}), IsEmpty());
}

TEST(NgramTableDrafts, TheLastTokensMayComeLater) {
  const std::vector<int32_t> text = {1, 2, 3, 4, 1, 2, 5, 6};
  NgramTableDrafts drafts({.n = 3, .k = 9, .lag = 3});
  drafts.Follow(text);
  EXPECT_THAT(Behind(drafts, {1, 2}), ElementsAre(3)) << "1 2 5 ends among the last three";
  drafts.Follow(std::vector{1, 2, 3, 4, 1, 2, 5, 6, 7, 8});
  EXPECT_THAT(Behind(drafts, {1, 2}), ElementsAre(3, 5));
  drafts.Follow(std::vector{7, 8, 9, 7, 8, 9});
  EXPECT_THAT(Behind(drafts, {1, 2}), IsEmpty()) << "a shorter text is another one";
  EXPECT_THAT(Behind(drafts, {7, 8}), ElementsAre(9));
}

// Against the definition: count all n-grams, sort those that begin with the token.
TEST(NgramTableDrafts, AgreesWithTheDefinition) {
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{2, 1}, {4, 3}, {4, 20}, {8, 5}}) {
    NgramTableDrafts drafts({.n = n, .k = k});
    std::vector<int32_t> text;
    for (int64_t i = 0; i < 4000; ++i) {
      text.push_back(static_cast<int32_t>(Uniform(3, 0, i, 0) * Uniform(3, 0, i, 1) * 6));
      if (i % 7 == 0) drafts.Follow(text);
    }
    drafts.Follow(text);
    std::map<std::vector<int32_t>, int64_t> counts;
    for (size_t i = 0; i + static_cast<size_t>(n) <= text.size(); ++i) {
      const auto ngram = std::span(text).subspan(i, static_cast<size_t>(n));
      ++counts[{ngram.begin(), ngram.end()}];
    }
    for (int32_t first = 0; first < 6; ++first) {
      std::vector<int64_t> frequencies;
      for (const auto& [ngram, count] : counts) {
        if (ngram.front() == first) frequencies.push_back(count);
      }
      std::ranges::sort(frequencies, std::greater());
      if (std::ssize(frequencies) > k) frequencies.resize(static_cast<size_t>(k));
      // All of the offered n-grams, path by path.
      std::vector<int64_t> offered;
      std::vector<std::vector<int32_t>> paths = {{first}};
      while (!paths.empty()) {
        const std::vector<int32_t> path = paths.back();
        paths.pop_back();
        if (std::ssize(path) == n) {
          offered.push_back(counts.at(path));
          continue;
        }
        for (const int32_t token : Behind(drafts, path)) {
          paths.push_back(path);
          paths.back().push_back(token);
        }
      }
      std::ranges::sort(offered, std::greater());
      EXPECT_EQ(offered, frequencies) << n << " " << k << " " << first;
    }
  }
}

}  // namespace
}  // namespace godwit::ngram_table_drafts_test
