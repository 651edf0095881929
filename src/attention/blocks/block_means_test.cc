#include "attention/blocks/block_means.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"
#include "ops/read_keys.h"

namespace godwit::block_means_test {
namespace {

using kernels::kTileTokens;

constexpr int64_t kHeads = 2, kDim = 12, kSize = 128, kBlocks = 70;
// Keys are their own values. The middle layer has no means.
const KvLayout kLayout{.layers = 3, .kv_heads = kHeads, .head_dim = kDim, .dtype = DType::kF32};
const std::vector<int64_t> kMeantLayers = {0, 2};

KvCache CacheOf(uint64_t seed, int64_t blocks) {
  KvCache cache(std::make_shared<KvPool>(kLayout));
  ReadRandomKeys(cache, blocks * kSize, seed);
  return cache;
}

void Fill(BlockMeans& means, const KvCache& cache, int64_t blocks, int64_t lasting = INT64_MAX,
          int threads = 1) {
  StepRunner runner(threads);
  means.Reserve(blocks);
  for (const int64_t layer : kMeantLayers) {
    means.Fill(runner.exec(), layer, cache.View(layer), blocks, lasting);
  }
}

// The mean keys of blocks, and behind them the mean values.
std::vector<float> Contents(const BlockMeans& means, int64_t blocks) {
  std::vector<float> all, tile(static_cast<size_t>(kDim * kTileTokens));
  for (const auto read : {ops::ReadKeys, ops::ReadValues}) {
    for (const int64_t layer : kMeantLayers) {
      for (int64_t row = 0; row < kHeads * blocks; ++row) {
        const int64_t block = row / kHeads;
        read(means.View(layer), kDim, row % kHeads, block / kTileTokens, tile.data(), kTileTokens);
        for (int64_t d = 0; d < kDim; ++d) {
          all.push_back(tile[d * kTileTokens + block % kTileTokens]);
        }
      }
    }
  }
  return all;
}

std::vector<float> Fresh(const KvCache& cache, int64_t blocks) {
  BlockMeans means(std::make_shared<KvPool>(kLayout), kSize, kMeantLayers);
  Fill(means, cache, blocks);
  return Contents(means, blocks);
}

TEST(BlockMeansTest, AreTheMeansOfKeysAndValues) {
  const KvCache cache = CacheOf(1, kBlocks);
  const auto found = Fresh(cache, kBlocks);
  size_t next = 0;
  for (int copy = 0; copy < 2; ++copy) {
    for (const int64_t layer : kMeantLayers) {
      for (int64_t row = 0; row < kHeads * kBlocks; ++row) {
        for (int64_t d = 0; d < kDim; ++d) {
          double sum = 0;
          for (int64_t i = 0; i < kSize; ++i) {
            sum += RandomKey(1, layer, row % kHeads, row / kHeads * kSize + i, d);
          }
          ASSERT_NEAR(found[next++], sum / kSize, 1e-6);
        }
      }
    }
  }
}

// Filling in pieces, on several cores, or again from the blocks that last gives the same means.
TEST(BlockMeansTest, WayOfFillingChangesNothing) {
  const KvCache cache = CacheOf(1, kBlocks), other = CacheOf(2, kBlocks);
  BlockMeans means(std::make_shared<KvPool>(kLayout), kSize, kMeantLayers);
  Fill(means, cache, 5, /*lasting=*/3);
  EXPECT_EQ(means.filled(2), 3);
  Fill(means, cache, 66, INT64_MAX, /*threads=*/3);
  Fill(means, other, kBlocks, /*lasting=*/66);
  Fill(means, cache, kBlocks);
  EXPECT_EQ(Contents(means, kBlocks), Fresh(cache, kBlocks));
  EXPECT_EQ(means.bytes(), 2 * kLayout.layers * kLayout.page_bytes());
}

TEST(BlockMeansTest, AForkAndATextThatGoesBackHaveTheirOwn) {
  const KvCache cache = CacheOf(1, kBlocks), other = CacheOf(2, kBlocks);
  const auto pool = std::make_shared<KvPool>(kLayout);
  BlockMeans means(pool, kSize, kMeantLayers);
  Fill(means, cache, 66);
  const int64_t used = pool->budget().used();
  BlockMeans fork(means);
  EXPECT_EQ(pool->budget().used(), used) << "all shared";
  fork.Truncate(0);
  EXPECT_EQ(fork.bytes(), 0);
  BlockMeans longer(means);
  Fill(longer, other, kBlocks);
  Fill(means, cache, kBlocks);
  EXPECT_EQ(Contents(means, kBlocks), Fresh(cache, kBlocks));
  means.Truncate(3);
  Fill(means, other, kBlocks);
  const auto expected = Fresh(other, kBlocks), kept = Fresh(cache, 3);
  const auto found = Contents(means, kBlocks);
  EXPECT_EQ(Contents(means, 3), kept);
  EXPECT_EQ(std::vector(found.begin() + 3 * kHeads * kDim, found.begin() + kBlocks * kHeads * kDim),
            std::vector(expected.begin() + 3 * kHeads * kDim,
                        expected.begin() + kBlocks * kHeads * kDim));
}

// An unended step made means of one layer. Truncate frees their memory.
TEST(BlockMeansTest, TruncateForgetsTheExtraMeansOfOneLayer) {
  const KvCache cache = CacheOf(1, kBlocks);
  BlockMeans means(std::make_shared<KvPool>(kLayout), kSize, kMeantLayers);
  Fill(means, cache, 10);
  means.Reserve(kBlocks);
  StepRunner runner;
  means.Fill(runner.exec(), 0, cache.View(0), kBlocks, kBlocks);
  means.Truncate(kBlocks);
  EXPECT_EQ(means.filled(0), 10);
  EXPECT_EQ(means.bytes(), kLayout.layers * kLayout.page_bytes());
  Fill(means, cache, kBlocks);
  EXPECT_EQ(Contents(means, kBlocks), Fresh(cache, kBlocks));
}

}  // namespace
}  // namespace godwit::block_means_test
