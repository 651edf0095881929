#include "attention/blocks/block_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"

namespace godwit::block_index_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kLayers = 2, kHeads = 2, kDim = 12;
constexpr int64_t kAllLayers[] = {0, 1};
// f32, so that a cache holds what was written, unless a test says otherwise.
const KvLayout kLayout{
    .layers = kLayers, .kv_heads = kHeads, .head_dim = kDim, .dtype = DType::kF32};
// One representative for each token, so that few blocks fill several pages of the pool.
constexpr ops::BlockShape kFine{.type = ops::RepresentativeType::kQuest, .tokens = 64, .parts = 64};
constexpr int64_t kBlocksOfPage = 4;  // blocks of kFine in a page of the pool
constexpr ops::BlockShape kSigns{
    .type = ops::RepresentativeType::kSign, .tokens = 64, .parts = 64, .learnt_blocks = 1};
constexpr int64_t kSignsOfPage = 28;

// Appends the signs of `blocks`, the integers and scale bits of their means, and the levels.
void AddSigns(const BlockIndex& index, int64_t layer, int64_t head, int64_t blocks,
              std::vector<int64_t>& all) {
  constexpr int64_t kBytes = 256;  // of a tile
  for (int64_t tile = 0; tile < blocks * index.shape().tokens / 64; ++tile) {
    const uint8_t* const signs = index.View(layer).parts.Signs(head, tile).signs;
    all.insert(all.end(), signs, signs + kBytes);
    const PartVector mean = VectorAt(index.View(layer).means, head, tile);
    all.insert(all.end(), mean.integers.begin(), mean.integers.end());
    all.push_back(std::bit_cast<int32_t>(mean.scale));
  }
  const float* const levels = index.View(layer).Levels(head).centre;
  for (int64_t i = 0; i < 3 * kDim; ++i) all.push_back(std::bit_cast<int32_t>(levels[i]));
}

// The representatives of the parts of `blocks`, as integers and the bits of scales.
std::vector<int64_t> Contents(const BlockIndex& index, int64_t blocks) {
  std::vector<int64_t> all;
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    for (int64_t head = 0; head < kHeads; ++head) {
      if (index.shape().signs()) {
        AddSigns(index, layer, head, blocks, all);
        continue;
      }
      for (int64_t part = 0; part < blocks * index.shape().parts; ++part) {
        const PartVector vector = VectorAt(index.View(layer).parts, head, part);
        all.insert(all.end(), vector.integers.begin(), vector.integers.end());
        all.push_back(std::bit_cast<int32_t>(vector.scale));
      }
    }
  }
  return all;
}

// Fills every layer.
void Fill(BlockIndex& index, const KvCache& cache, int64_t blocks, int64_t lasting = INT64_MAX,
          int threads = 1) {
  StepRunner runner(threads);
  index.Reserve(blocks);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    index.Fill(runner.exec(), layer, cache.View(layer), blocks, lasting);
  }
}

std::vector<int64_t> FreshContents(const ops::BlockShape& shape, const KvCache& cache,
                                   int64_t blocks) {
  BlockIndex index(shape, std::make_shared<KvPool>(cache.layout()), kAllLayers);
  Fill(index, cache, blocks);
  return Contents(index, blocks);
}

// The contents of an index filled at once, for a text that has other keys from `block` on.
std::vector<int64_t> ContentsFrom(const ops::BlockShape& shape, uint64_t seed, int64_t block,
                                  uint64_t other_seed, int64_t blocks) {
  KvCache cache(std::make_shared<KvPool>(kLayout));
  ReadRandomKeys(cache, block * shape.tokens, seed);
  ReadRandomKeys(cache, (blocks - block) * shape.tokens, other_seed);
  return FreshContents(shape, cache, blocks);
}

std::vector<ops::BlockShape> Shapes() {
  std::vector<ops::BlockShape> shapes;
  for (const ops::RepresentativeType type :
       {ops::RepresentativeType::kMeanStd, ops::RepresentativeType::kMax}) {
    for (const int64_t tokens : {1, 16, 64, 128, 256}) {
      for (const int64_t parts : {1, 2, 16, 64}) {
        if (parts > tokens) continue;
        shapes.push_back({.type = type, .tokens = tokens, .parts = parts});
      }
    }
  }
  return shapes;
}

std::vector<ops::BlockShape> ShapesAndSigns() {
  std::vector<ops::BlockShape> shapes = Shapes();
  for (const int64_t tokens : {64, 192}) {
    shapes.push_back(kSigns);
    shapes.back().tokens = shapes.back().parts = tokens;
  }
  return shapes;
}

TEST(BlockIndexTest, HoldsTheRepresentativesOfItsPages) {
  KvCache cache(std::make_shared<KvPool>(kLayout));
  ReadRandomKeys(cache, 1100, 1);
  for (const ops::BlockShape& shape : Shapes()) {
    const int64_t blocks = 1100 / shape.tokens, n = shape.part_tokens();
    BlockIndex index(shape, cache.shared_pool(), kAllLayers);
    Fill(index, cache, blocks);
    ASSERT_EQ(index.View(0).parts.width, ops::VectorsOf(shape.type) * kDim);
    for (int64_t part = 0; part < blocks * shape.parts; ++part) {
      for (int64_t row = 0; row < kLayers * kHeads; ++row) {
        const int64_t layer = row / kHeads, head = row % kHeads;
        std::vector<float> keys, scratch(2 * kDim);
        for (int64_t d = 0; d < kDim; ++d) {
          for (int64_t p = part * n; p < (part + 1) * n; ++p) {
            keys.push_back(RandomKey(1, layer, head, p, d));
          }
        }
        std::vector<int8_t> integers(2 * kDim);
        const float scale = ops::Represent(shape.type, BestKernels(), keys.data(), n, n, kDim,
                                           scratch.data(), integers.data());
        const PartVector found = VectorAt(index.View(layer).parts, head, part);
        ASSERT_EQ(found.scale, scale);
        for (int64_t d = 0; d < index.View(0).parts.width; ++d) {
          ASSERT_EQ(found.integers[d], integers[d])
              << "part " << part << " of " << shape.parts << " x " << n << " tokens";
        }
      }
    }
  }
}

// Zeros follow each representative where the width is no multiple of four.
TEST(BlockIndexTest, OddWidthsEndInZeros) {
  KvCache cache(std::make_shared<KvPool>(
      KvLayout{.layers = kLayers, .kv_heads = kHeads, .head_dim = 5, .dtype = DType::kF32}));
  ReadRandomKeys(cache, 128, 2);
  for (const ops::RepresentativeType type :
       {ops::RepresentativeType::kMean, ops::RepresentativeType::kQuest}) {
    BlockIndex index({.type = type, .tokens = 64, .parts = 4}, cache.shared_pool(), kAllLayers);
    Fill(index, cache, 2);
    for (int64_t part = 0; part < 8; ++part) {
      const std::vector<int> integers = VectorAt(index.View(1).parts, 1, part).integers;
      ASSERT_GT(std::ssize(integers), index.View(0).parts.width);
      for (auto d = static_cast<size_t>(index.View(0).parts.width); d < integers.size(); ++d) {
        EXPECT_EQ(integers[d], 0);
      }
    }
  }
}

TEST(BlockIndexTest, WayOfFillingChangesNothing) {
  for (const KvType& type : kKvTypes) {
    KvLayout layout = kLayout;
    layout.dtype = type.dtype;
    KvCache cache(std::make_shared<KvPool>(layout));
    ReadRandomKeys(cache, 1100, 3);
    for (const ops::BlockShape& shape : ShapesAndSigns()) {
      // Two vectors of a block do not fit beside 4 bits (policies/blocks_test.cc).
      if (ops::VectorTileBytes(ops::VectorsOf(shape.type) * kDim) > layout.head_bytes()) continue;
      const int64_t blocks = 1100 / shape.tokens;
      const auto expected = FreshContents(shape, cache, blocks);
      const auto expect = [&](const char* how, int64_t step, int64_t lasting, int threads) {
        BlockIndex index(shape, cache.shared_pool(), kAllLayers);
        for (int64_t to = step; to < blocks; to += step) Fill(index, cache, to, lasting, threads);
        Fill(index, cache, blocks, lasting, threads);
        EXPECT_EQ(Contents(index, blocks), expected)
            << how << ", " << type.name << ", " << shape.parts << " parts of " << shape.tokens;
      };
      expect("a block at a time", 1, blocks, 1);
      expect("three, none of which lasts", 3, 0, 1);
      expect("five, of which some last", 5, 7, 2);
      expect("by two threads", blocks, blocks, 2);
    }
  }
}

// Blocks beyond `lasting` are made again, because their keys may have changed by then.
TEST(BlockIndexTest, BlocksBeyondLastingAreMadeAgain) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  KvCache cache(pool), other(pool);
  ReadRandomKeys(cache, 640, 4);
  ReadRandomKeys(other, 640, 5);
  for (const ops::BlockShape& shape : {kFine, kSigns, ops::BlockShape{}}) {
    BlockIndex index(shape, pool, kAllLayers);
    const auto expect_other_from = [&](int64_t block) {
      EXPECT_EQ(Contents(index, 10), ContentsFrom(shape, 4, block, 5, 10))
          << shape.parts << " parts, from block " << block;
    };
    Fill(index, cache, 10, 6);
    Fill(index, other, 10, 10);
    expect_other_from(6);
    index.Truncate(7);
    Fill(index, cache, 10);
    index.Truncate(3);
    index.Truncate(5);  // more blocks than it holds
    Fill(index, other, 10);
    expect_other_from(3);
  }
}

TEST(BlockIndexTest, CountsWhatScoringReads) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  const auto expect = [&](const ops::BlockShape& shape, int64_t blocks, int64_t tiles) {
    const BlockIndex index(shape, pool, kAllLayers);
    const int64_t tile = 64 * (index.View(0).parts.width + int64_t{sizeof(float)});
    EXPECT_EQ(index.ReadBytes(blocks), tiles * tile * kHeads);
  };
  expect(kFine, 0, 0);
  expect(kFine, 5, 5);
  expect({.type = ops::RepresentativeType::kMean, .tokens = 64, .parts = 4}, 16, 1);
  expect({.type = ops::RepresentativeType::kMean, .tokens = 64, .parts = 4}, 17, 2);
  expect({.type = ops::RepresentativeType::kMeanStd, .tokens = 256, .parts = 1}, 65, 2);
}

// The signs of 64 keys in four dimensions take 32 bytes. A tile holds 64 means.
TEST(BlockIndexTest, CountsTheMeansOfSigns) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  for (const int64_t tiles : {1, 3}) {
    ops::BlockShape shape = kSigns;
    shape.tokens = shape.parts = tiles * 64;
    const BlockIndex index(shape, pool, kAllLayers);
    for (const int64_t blocks : {0, 1, 21, 22, 64, 65}) {
      const int64_t of_means = (blocks * tiles + 63) / 64 * 64 * (kDim + int64_t{sizeof(float)});
      EXPECT_EQ(index.ReadBytes(blocks), (blocks * tiles * 256 + of_means) * kHeads);
      const int64_t pages =
          (blocks * tiles + kSignsOfPage - 1) / kSignsOfPage + (blocks > 0 ? 1 : 0);
      EXPECT_EQ(index.BytesFor(blocks), pages * kLayers * kLayout.page_bytes());
    }
  }
}

// Signs and means have pages of their own. A write into a shared page copies it.
TEST(BlockIndexTest, AForkOfSignsCopiesTheirMeansToo) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  KvCache cache(pool), other(pool);
  constexpr int64_t kBlocks = kSignsOfPage + 2;
  ReadRandomKeys(cache, 64 * kBlocks, 6);
  ReadRandomKeys(other, 64 * kBlocks, 7);
  const int64_t of_caches = pool->pages_in_use();
  const auto pages = [&] { return pool->pages_in_use() - of_caches; };
  BlockIndex index(kSigns, pool, kAllLayers);
  Fill(index, cache, kBlocks - 1);
  EXPECT_EQ(pages(), (2 + 1) * kLayers);
  EXPECT_EQ(index.bytes(), pages() * kLayout.page_bytes());
  const auto before = Contents(index, kBlocks - 1);
  {
    BlockIndex fork(index);
    EXPECT_EQ(Contents(fork, kBlocks - 1), before);
    EXPECT_EQ(pages(), (2 + 1) * kLayers);
    Fill(fork, other, kBlocks);
    EXPECT_EQ(pages(), (3 + 2) * kLayers) << "the last of signs, and that of means";
    EXPECT_EQ(Contents(index, kBlocks - 1), before);
    EXPECT_EQ(Contents(fork, kBlocks), ContentsFrom(kSigns, 6, kBlocks - 1, 7, kBlocks));
    index.Truncate(0);
    EXPECT_EQ(index.bytes(), 0);
  }
  EXPECT_EQ(pages(), 0);
}

// Reserve takes neither signs nor means if memory does not suffice for both.
TEST(BlockIndexTest, SignsNeedMemoryForTheirMeans) {
  constexpr int64_t kBlocks = 3;
  const int64_t of_cache = kLayout.BytesFor(64 * kBlocks), page = kLayout.page_bytes();
  const auto budget = std::make_shared<KvBudget>(of_cache + 3 * page);
  const auto pool = std::make_shared<KvPool>(kLayout, budget);
  KvCache cache(pool);
  ReadRandomKeys(cache, 64 * kBlocks, 9);
  BlockIndex index(kSigns, pool, kAllLayers);
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { index.Reserve(kBlocks); }), HasSubstr("are taken"));
  EXPECT_EQ(budget->used(), of_cache);
  EXPECT_EQ(index.bytes(), 0);
}

// A fork shares every page. The fork and its origin copy the pages that they write into.
TEST(BlockIndexTest, AForkCopiesWhatItWritesInto) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  KvCache cache(pool), other(pool);
  constexpr int64_t kBlocks = 2 * kBlocksOfPage + 2;
  ReadRandomKeys(cache, 64 * (kBlocks + 3), 6);
  ReadRandomKeys(other, 64 * (kBlocks + 3), 7);
  const int64_t of_caches = pool->pages_in_use();
  const auto pages = [&] { return pool->pages_in_use() - of_caches; };

  BlockIndex index(kFine, pool, kAllLayers);
  Fill(index, cache, kBlocks);
  EXPECT_EQ(pages(), 3 * kLayers);
  EXPECT_EQ(index.bytes(), 3 * kLayers * kLayout.page_bytes());
  const auto before = Contents(index, kBlocks);
  {
    BlockIndex fork(index);
    EXPECT_EQ(fork.bytes(), index.bytes());
    EXPECT_EQ(Contents(fork, kBlocks), before);
    fork.Reserve(kBlocks);
    EXPECT_EQ(pages(), 3 * kLayers + kLayers) << "what a step writes again";
    Fill(fork, other, kBlocks + 2);
    EXPECT_EQ(pages(), 3 * kLayers + kLayers) << "the last page";
    Fill(fork, other, kBlocks + 3);
    EXPECT_EQ(pages(), 3 * kLayers + 2 * kLayers) << "and another";
    EXPECT_EQ(Contents(index, kBlocks), before);
    EXPECT_EQ(Contents(fork, kBlocks), before);
    const auto expected = ContentsFrom(kFine, 6, kBlocks, 7, kBlocks + 3);
    EXPECT_EQ(Contents(fork, kBlocks + 3), expected);

    // The two still share the first page, until one of them goes back into it.
    index.Truncate(1);
    Fill(index, other, kBlocks);
    EXPECT_EQ(pages(), 3 * kLayers + 4 * kLayers) << "nothing is shared any more";
    EXPECT_EQ(Contents(fork, kBlocks + 3), expected);
  }
  EXPECT_EQ(pages(), 3 * kLayers);
  EXPECT_EQ(Contents(index, kBlocks), ContentsFrom(kFine, 6, 1, 7, kBlocks));
}

// Another index takes up the first `blocks`, and then fills all of them.
void ExpectToRestore(const BlockIndex& index, const std::shared_ptr<KvPool>& pool,
                     const KvCache& cache, int64_t blocks, int64_t all) {
  BlockIndex again(index.shape(), pool, kAllLayers);
  ASSERT_TRUE(again.Restore(index.parts(), blocks));
  EXPECT_EQ(again.lasting(), blocks);
  EXPECT_EQ(Contents(again, blocks), Contents(index, blocks));
  Fill(again, cache, all);
  EXPECT_EQ(Contents(again, all), Contents(index, all));
}

// An index takes up all blocks of another, or the first of them.
TEST(BlockIndexTest, AdoptsTheBlocksOfAnother) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  KvCache cache(pool);
  constexpr int64_t kBlocks = 2 * kBlocksOfPage + 2;
  ReadRandomKeys(cache, 64 * kBlocks, 6);
  BlockIndex index(kFine, pool, kAllLayers);
  EXPECT_EQ(index.lasting(), 0);
  Fill(index, cache, kBlocks);
  EXPECT_EQ(index.lasting(), kBlocks);
  const auto parts = index.parts();
  ASSERT_EQ(parts.size(), 1u + 3 * kLayers);
  for (const int64_t blocks : {int64_t{1}, kBlocksOfPage, kBlocksOfPage + 1, kBlocks}) {
    ExpectToRestore(index, pool, cache, blocks, kBlocks);
  }
  BlockIndex none(kFine, pool, kAllLayers);
  EXPECT_FALSE(none.Restore(parts, 0));
  EXPECT_FALSE(none.Restore(parts, 3 * kBlocksOfPage + 1)) << "more than there are";
  EXPECT_FALSE(none.Restore(std::span(parts).subspan(1), 1)) << "others";
  auto shorter = parts;
  shorter[1] = shorter[1].first(1);
  EXPECT_FALSE(none.Restore(shorter, 1));
  EXPECT_EQ(none.bytes(), 0);
}

TEST(BlockIndexTest, AdoptsSignsWithTheirMeans) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  KvCache cache(pool);
  constexpr int64_t kBlocks = 2 * kSignsOfPage + 2;
  ReadRandomKeys(cache, 64 * kBlocks, 6);
  BlockIndex index(kSigns, pool, kAllLayers);
  Fill(index, cache, kBlocks);
  const auto parts = index.parts();
  ASSERT_EQ(parts.size(), 1u + 3 * kLayers + 1u + kLayers);
  for (const int64_t blocks : {int64_t{1}, kSignsOfPage, kSignsOfPage + 1, kBlocks}) {
    ExpectToRestore(index, pool, cache, blocks, kBlocks);
  }
  BlockIndex none(kSigns, pool, kAllLayers);
  EXPECT_FALSE(none.Restore(parts, 0));
  EXPECT_FALSE(none.Restore(parts, 3 * kSignsOfPage + 1)) << "more than there are";
  EXPECT_FALSE(none.Restore(std::span(parts).first(1 + 3 * kLayers), 1)) << "no means";
  EXPECT_FALSE(none.Restore(std::span(parts).first(parts.size() - 1), 1)) << "of one layer";
  auto shorter = parts;
  shorter.back() = shorter.back().first(1);
  EXPECT_FALSE(none.Restore(shorter, 1));
  EXPECT_EQ(none.bytes(), 0);
}

TEST(BlockIndexTest, OnlyItsLayersTakeMemory) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  KvCache cache(pool);
  ReadRandomKeys(cache, 64 * 3 * kBlocksOfPage, 10);
  const int64_t of_cache = pool->pages_in_use();
  constexpr int64_t kSecond[] = {1};
  StepRunner runner;
  const auto fill = [&](BlockIndex& index, int64_t blocks) {
    index.Reserve(blocks);
    index.Fill(runner.exec(), 1, cache.View(1), blocks, blocks);
  };
  BlockIndex index(kFine, pool, kSecond);
  fill(index, 10);
  EXPECT_EQ(pool->pages_in_use(), of_cache + 3);
  EXPECT_EQ(index.bytes(), 3 * kLayout.page_bytes());
  BlockIndex fork(index);
  fill(fork, 11);
  EXPECT_EQ(pool->pages_in_use(), of_cache + 4);

  BlockIndex all(kFine, pool, kAllLayers);
  Fill(all, cache, 11);
  for (int64_t part = 0; part < 11 * kFine.parts; ++part) {
    const PartVector expected = VectorAt(all.View(1).parts, 1, part),
                     found = VectorAt(fork.View(1).parts, 1, part);
    ASSERT_EQ(found.integers, expected.integers) << "part " << part;
    ASSERT_EQ(found.scale, expected.scale);
  }
  BlockIndex none(kFine, pool, {});
  none.Reserve(10);
  EXPECT_EQ(none.bytes(), 0);
}

TEST(BlockIndexTest, LastUserFreesThePages) {
  const auto pool = std::make_shared<KvPool>(kLayout);
  KvCache cache(pool);
  ReadRandomKeys(cache, 640, 8);
  const int64_t of_cache = pool->pages_in_use();
  auto index = std::make_unique<BlockIndex>(kFine, pool, kAllLayers);
  Fill(*index, cache, 10);
  auto fork = std::make_unique<BlockIndex>(*index);
  const auto contents = Contents(*fork, 10);
  index.reset();
  EXPECT_EQ(pool->pages_in_use(), of_cache + 3 * kLayers);
  EXPECT_EQ(Contents(*fork, 10), contents);
  fork.reset();
  EXPECT_EQ(pool->pages_in_use(), of_cache);
}

TEST(BlockIndexTest, FailedGrowthKeepsTheIndex) {
  constexpr int64_t kTokens = 64 * 3 * kBlocksOfPage;
  const int64_t bytes = kLayout.BytesFor(kTokens) + 3 * kLayers * kLayout.page_bytes();
  const auto budget = std::make_shared<KvBudget>(bytes);
  const auto pool = std::make_shared<KvPool>(kLayout, budget);
  KvCache cache(pool);
  ReadRandomKeys(cache, kTokens, 9);
  BlockIndex index(kFine, pool, kAllLayers);
  Fill(index, cache, kBlocksOfPage + 1);
  const auto before = Contents(index, kBlocksOfPage + 1);
  const auto refuse = [&](BlockIndex& one, int64_t blocks) {
    const int64_t used = budget->used(), held = one.bytes();
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { one.Reserve(blocks); }), HasSubstr("are taken"));
    EXPECT_EQ(budget->used(), used);
    EXPECT_EQ(one.bytes(), held);
    EXPECT_EQ(Contents(one, kBlocksOfPage + 1), before);
  };
  refuse(index, 3 * kBlocksOfPage + 1);
  {
    BlockIndex fork(index);
    refuse(fork, 2 * kBlocksOfPage + 1);  // a page to copy, and a new one
    refuse(index, 2 * kBlocksOfPage + 1);
  }
  Fill(index, cache, 3 * kBlocksOfPage);
  EXPECT_EQ(budget->used(), bytes);
  EXPECT_EQ(Contents(index, 3 * kBlocksOfPage), FreshContents(kFine, cache, 3 * kBlocksOfPage));
}

}  // namespace
}  // namespace godwit::block_index_test
