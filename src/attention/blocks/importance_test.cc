#include "ops/blocks/importance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"

namespace godwit::importance_test {
namespace {

constexpr int64_t kTokens = 640, kBegin = 256, kEnd = 512, kObservers = 30;

KvCache CacheOf(const AttentionGeometry& geometry, DType type) {
  KvCache cache(std::make_shared<KvPool>(LayoutOf(geometry, type)));
  ReadRandomKeys(cache, kTokens, 3);
  return cache;
}

// Queries of the last tokens of [kBegin, kEnd), with heads of 12 dimensions.
std::vector<float> Queries(int64_t heads) {
  std::vector<float> q;
  for (int64_t i = 0; i < kObservers * heads * 12; ++i) {
    q.push_back(static_cast<float>(6 * Uniform(11, 0, i, 0) - 3));
  }
  return q;
}

std::vector<uint16_t> Found(const AttentionGeometry& geometry, const KvCache& cache, int64_t layer,
                            const std::vector<float>& q, int64_t block_tokens, int64_t count,
                            int threads = 1) {
  const int64_t width = geometry.shape.heads * geometry.shape.head_dim;
  std::vector<ops::PlacedQuery> queries;
  for (int64_t i = 0; i < kObservers; ++i) {
    queries.push_back({kEnd - kObservers + i, std::span(q).subspan(i * width, width)});
  }
  const int64_t rows = (kEnd - kBegin) / block_tokens * geometry.shape.kv_heads;
  std::vector<uint16_t> places(rows * count);
  StepRunner runner(threads);
  ops::FindImportant(runner.exec(), geometry.shape, geometry.alibi, cache.View(layer), block_tokens,
                     queries, kBegin, kEnd, {places.data(), rows, count, count});
  return places;
}

// The importance in double, from keys in f32.
std::vector<double> Importance(const AttentionGeometry& geometry, int64_t layer, int64_t kv_head,
                               const std::vector<float>& q) {
  const ops::AttentionShape& shape = geometry.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  std::vector<double> importance(kEnd - kBegin);
  for (int64_t i = 0; i < kObservers; ++i) {
    const int64_t position = kEnd - kObservers + i;
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      std::vector<double> shares;
      for (int64_t key = kBegin; key <= position; ++key) {
        double score = 0;
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          score += double{q[(i * shape.heads + head) * shape.head_dim + d]} *
                   RandomKey(3, layer, kv_head, key, d);
        }
        const double slope = geometry.alibi.slopes.empty() ? 0 : geometry.alibi.slopes[head];
        shares.push_back(
            std::exp(score * double{shape.scale} +
                     double{geometry.alibi.scale} * slope * static_cast<double>(key - position)));
      }
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (size_t j = 0; j < shares.size(); ++j) importance[j] += shares[j] / sum;
    }
  }
  return importance;
}

TEST(FindImportantTest, FindsTheTokensOfEachBlockThatGetMostAttention) {
  const AttentionGeometry rotated = TestGeometry(6, 2, 12, 8, {0, 0});
  for (const AttentionGeometry& geometry : {rotated, WithAlibi(rotated, /*in_bf16=*/false)}) {
    const KvCache cache = CacheOf(geometry, DType::kF32);
    const auto q = Queries(6);
    for (const int64_t block : {64, 128, 256}) {
      for (const int64_t count : {1, 4, 64}) {
        const auto places = Found(geometry, cache, 1, q, block, count);
        for (size_t row = 0; row < places.size() / static_cast<size_t>(count); ++row) {
          const auto importance = Importance(geometry, 1, static_cast<int64_t>(row) % 2, q);
          const auto first = static_cast<int64_t>(row) / 2 * block;
          std::vector<int64_t> order(block);
          std::iota(order.begin(), order.end(), 0);
          std::ranges::sort(order, std::greater{},
                            [&](int64_t place) { return importance[first + place]; });
          std::sort(order.begin(), order.begin() + count);
          const auto found = places.begin() + static_cast<int64_t>(row) * count;
          EXPECT_EQ(std::vector<int64_t>(found, found + count),
                    std::vector<int64_t>(order.begin(), order.begin() + count))
              << "row " << row << ", blocks of " << block;
        }
      }
    }
  }
}

TEST(FindImportantTest, ThreadsChangeNothing) {
  const AttentionGeometry geometry = TestGeometry(6, 3, 12, 8, {0});
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8}) {
    const KvCache cache = CacheOf(geometry, type);
    const auto q = Queries(6);
    EXPECT_EQ(Found(geometry, cache, 0, q, 64, 4, 3), Found(geometry, cache, 0, q, 64, 4));
  }
}

TEST(FindImportantTest, EarlierOfEqualsComesFirstAndNonFiniteCountsNothing) {
  const AttentionGeometry geometry = TestGeometry(6, 2, 12, 8, {0});
  const KvCache cache = CacheOf(geometry, DType::kF32);
  auto q = Queries(6);
  q[5] = std::numeric_limits<float>::quiet_NaN();  // in the first KV head
  const auto places = Found(geometry, cache, 0, q, 128, 2);
  EXPECT_EQ(std::vector<uint16_t>(places.begin(), places.begin() + 2),
            (std::vector<uint16_t>{0, 1}));
  const auto whole = Found(geometry, cache, 0, Queries(6), 128, 2);
  EXPECT_EQ(std::vector<uint16_t>(places.begin() + 2, places.begin() + 4),
            std::vector<uint16_t>(whole.begin() + 2, whole.begin() + 4));
}

}  // namespace
}  // namespace godwit::importance_test
