#include "attention/blocks/blocks_importance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "attention/policies/blocks_test_support.h"

namespace godwit::blocks_importance_test {
namespace {

constexpr int64_t kTokens = 1000, kStretch = 128, kObservers = 20;
constexpr const char* kSpec =
    "blocks:initial=64,local_windows_len=130,second_block_count=2,observation_window=20,"
    "representative_num=4,representative_type=DYNAMIC";

// The tokens of a block with the most attention from the observers of its stretch.
std::vector<int64_t> Important(const AttentionGeometry& geometry, const TestText& text,
                               int64_t layer, int64_t kv_head, int64_t block) {
  const int64_t begin = block * 64 / kStretch * kStretch, end = begin + kStretch;
  const int64_t group = geometry.shape.heads / geometry.shape.kv_heads;
  std::vector<double> importance(kStretch);
  for (int64_t t = end - kObservers; t < end; ++t) {
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      auto shares = text.Scores(layer, head, t, t, KeysIn(begin, t + 1));
      for (double& share : shares) share = std::exp(share);
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (size_t j = 0; j < shares.size(); ++j) importance[j] += shares[j] / sum;
    }
  }
  std::vector<int64_t> order(64);
  std::iota(order.begin(), order.end(), block * 64);
  std::ranges::sort(order, std::greater{}, [&](int64_t t) { return importance[t - begin]; });
  order.resize(4);
  return order;
}

// The blocks that a token sees with a KV head, chosen by the softmax over all important keys.
std::set<int64_t> Seen(const AttentionGeometry& geometry, const TestText& text, int64_t layer,
                       int64_t kv_head, int64_t position) {
  const int64_t group = geometry.shape.heads / geometry.shape.kv_heads;
  const int64_t local = (position + 1 - 130) / 64;
  std::vector<double> worth(local);
  std::vector<SeenKey> keys;
  for (int64_t block = 0; block < local; ++block) {
    for (const int64_t t : Important(geometry, text, layer, kv_head, block)) keys.push_back({t, t});
  }
  for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    auto shares = text.Scores(layer, head, position, position, keys);
    for (double& share : shares) share = std::exp(share);
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (size_t i = 0; i < shares.size(); ++i) {
      worth[i / 4] = std::max(worth[i / 4], shares[i] / sum);
    }
  }
  std::vector<int64_t> order(local - 1);
  std::iota(order.begin(), order.end(), 1);
  std::ranges::sort(order, std::greater{}, [&](int64_t block) { return worth[block]; });
  std::set<int64_t> seen = {0, order[0], order[1]};
  for (int64_t block = local; block <= position / 64; ++block) seen.insert(block);
  return seen;
}

// Tokens of context, question and answer.
TEST(BlocksPolicyDynamic, ChoosesByTheKeysThatGotMostAttention) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 23);
  const auto out = ReadText(*BlocksText(geometry, kSpec, 500, nullptr, 620), text, kTokens, 77);
  int equal = 0, all = 0;
  for (int64_t t = 500; t < kTokens; t += 13) {
    for (int64_t layer = 0; layer < 2; ++layer) {
      for (int64_t head = 0; head < 4; ++head) {
        std::vector<SeenKey> keys;
        for (const int64_t block : Seen(geometry, text, layer, head / 2, t)) {
          const auto some = KeysIn(block * 64, std::min(t + 1, block * 64 + 64));
          keys.insert(keys.end(), some.begin(), some.end());
        }
        const auto expected = text.Attend(layer, head, t, t, keys);
        double error = 0;
        for (int64_t d = 0; d < 12; ++d) {
          const float found = out[((t * 2 + layer) * 4 + head) * 12 + d];
          error = std::max(error, std::abs(found - expected[d]));
        }
        equal += error < 2e-6 ? 1 : 0;
        ++all;
      }
    }
  }
  // Representatives are rounded to int8, which swaps a few nearly equal blocks.
  EXPECT_GE(equal, all * 19 / 20) << "of " << all;
}

// A text that goes back gets the same bits, and observers are read again.
TEST(BlocksPolicyDynamic, ATextThatGoesBackGoesOnAsIfAlone) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 4), other(geometry, kTokens, 5);
  const auto cache = BlocksText(geometry, kSpec, 400);
  ReadText(*cache, text, 900, 100);
  for (const int64_t length : {890, 850, 765, 640, 639, 500, 300}) {
    const int64_t back = cache->RestartPoint(length, INT64_MAX);
    EXPECT_GT(back, length - kObservers);
    const auto fork = cache->Fork();
    fork->Truncate(back);
    const auto alone = BlocksText(geometry, kSpec, 400);
    ReadText(*alone, text, back, 64);
    EXPECT_EQ(ReadText(*fork, other, kTokens, 9), ReadText(*alone, other, kTokens, 64)) << length;
  }
  EXPECT_EQ(cache->RestartPoint(890, INT64_MAX), 890) << "is remembered";
  EXPECT_EQ(cache->RestartPoint(639, INT64_MAX), 620) << "its first observer";
  EXPECT_EQ(cache->RestartPoint(700, INT64_MAX), 700) << "observed by nobody yet";
}

TEST(BlocksPolicyDynamic, TokensReadElsewhereGetEvenlySpacedImportantKeys) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 4);
  const auto dense = BlocksText(geometry, "dense");
  ReadText(*dense, text, 640, 64);
  const auto as = [&](std::string_view type) {
    const std::string spec = fmt::format(
        "blocks:local_windows_len=130,second_block_count=2,representative_num=4,"
        "representative_type={}",
        type);
    const auto fork = dense->Fork(MakePolicy(geometry, {.spec = spec, .context = kBlocksContext}));
    return ReadText(*fork, text, 820, 10);
  };
  EXPECT_EQ(as("DYNAMIC"), as("FIX"));
  EXPECT_NE(as("DYNAMIC"), as("MEAN"));
}

// An unended step leaves nothing.
TEST(BlocksPolicyDynamic, UnendedStepLeavesNoTrace) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 4), other(geometry, kTokens, 5);
  const auto cache = BlocksText(geometry, kSpec, 400), alone = BlocksText(geometry, kSpec, 400);
  StepRunner runner;
  for (const auto& one : {cache.get(), alone.get()}) ReadText(*one, text, 750, 100);
  const StepRows step{cache.get(), &other, RowRange(750, 800)};
  runner.Run({&step, 1}, /*end=*/false);
  EXPECT_EQ(ReadText(*cache, text, kTokens, 40), ReadText(*alone, text, kTokens, 40));
}

TEST(BlocksPolicyDynamic, RememberedKeysCountAsMemory) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, kTokens, 4);
  const auto cache = BlocksText(geometry, kSpec, 400);
  const KvBudget& budget = cache->cache().pool().budget();
  ReadText(*cache, text, 640, 64);
  // Memory of 5 stretches of 2 blocks, 2 heads and 4 tokens, and of one stretch's observers, in 2
  // layers.
  EXPECT_EQ(cache->Stats().bytes - budget.used(),
            2 * (5 * 2 * 2 * 4 * 2 + kObservers * 4 * 12 * 4));
}

}  // namespace
}  // namespace godwit::blocks_importance_test
