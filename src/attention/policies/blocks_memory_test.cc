#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "attention/policies/blocks_test_support.h"
#include "base/test_folder.h"

namespace godwit::blocks_memory_test {
namespace {

using ::testing::HasSubstr;

// Rows of one step attend one at a time, each to its own blocks.
TEST(BlocksPolicyStats, AStepReadsTheIndexAndWhatWasChosen) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const TestText text(geometry, 1000, 2);
  constexpr int64_t kTile = 64 * (2 * 12 + int64_t{sizeof(float)});  // a tile of representatives
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const auto cache = BlocksText(
      geometry, "blocks:local_windows_len=100,second_block_count=2,representative_type=MEANSTD");
  // 4 blocks and a window of 100 tokens.
  ReadText(*cache, text, 4 * 64 + 99, 64);
  EXPECT_EQ(cache->Stats().bytes, layout.BytesFor(4 * 64 + 99)) << "nothing to choose so far";
  ReadText(*cache, text, 999, 100);
  EXPECT_EQ(cache->Stats().bytes, layout.BytesFor(999) + layout.page_bytes());
  ReadText(*cache, text, 1000, 1);
  const KvStats stats = cache->Stats();
  EXPECT_EQ(stats.policy,
            "blocks:local_windows_len=100,second_block_count=2,representative_type=MEANSTD");
  EXPECT_EQ(stats.kept, 1000);
  EXPECT_EQ(stats.max_kept_tokens, kBlocksContext);
  // The window of the row at 999 begins in block 14. Before it lie 56 parts, in one tile.
  const int64_t tokens = 64 + 2 * 64 + 1000 - 14 * 64;
  EXPECT_EQ(stats.read_bytes, tokens * layout.bytes_per_token() + 2 * kTile);
}

// The first layer is dense by the spec. The third has the model's own window.
TEST(BlocksPolicyStats, LayersThatSeeAllOrAWindowHaveNoIndex) {
  constexpr int64_t kTokens = 640;
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0, 9, 0});
  const TestText text(geometry, kTokens, 2);
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  // Layers that share another layer's choice have no index. Signs lie in one page, means in
  // another.
  for (const int64_t layer_step : {1, 2}) {
    const auto cache =
        BlocksText(geometry, fmt::format("blocks:local_windows_len=1,second_block_count=1,"
                                         "dense_layer_num=1,layer_step={}",
                                         layer_step));
    ReadText(*cache, text, kTokens, 64);
    EXPECT_EQ(cache->Stats().bytes,
              layout.BytesFor(kTokens) + (2 / layer_step) * 2 * layout.page_bytes());
  }
}

// The cache fits into memory, but its index does not.
TEST(BlocksPolicyMemory, TextStaysUnchangedWithoutMemoryForTheIndex) {
  const std::string spec = "blocks:second_block_count=2";
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const TestText text(geometry, 2100, 3);
  const auto budget = std::make_shared<KvBudget>(layout.BytesFor(34 * 64));
  const auto cache = BlocksText(geometry, spec, 2000, std::make_shared<KvPool>(layout, budget));
  ReadText(*cache, text, 2000, 500);
  const KvStats before = cache->Stats();
  const int64_t used = budget->used();
  const auto expect_as_before = [&] {
    EXPECT_EQ(cache->length(), 2000);
    EXPECT_EQ(cache->Stats().bytes, before.bytes);
    EXPECT_EQ(cache->Stats().read_bytes, before.read_bytes);
    EXPECT_EQ(budget->used(), used);
  };
  for (const int64_t tokens : {100, 200}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { cache->Reserve(tokens); }),
                HasSubstr("are taken"));
    expect_as_before();
  }
  StepRunner runner;
  const StepRows step{cache.get(), &text, RowRange(2000, 2100)};
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { runner.Run({&step, 1}); }), HasSubstr("are taken"));
  expect_as_before();

  cache->SetQuestion(1800);
  cache->Truncate(1900);
  const auto fresh = BlocksText(geometry, spec, 1800);
  ReadText(*fresh, text, 1900, 500);
  EXPECT_EQ(ReadText(*cache, text, 2000, 7), ReadText(*fresh, text, 2000, 7));
  EXPECT_EQ(budget->used(), layout.BytesFor(2000) + 2 * layout.page_bytes());
}

TEST(BlocksPolicyMemory, TheIndexOfAFileLiesInMemory) {
  const std::string spec = "blocks:second_block_count=2,local_windows_len=64";
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const TestText text(geometry, 2100, 3);
  const TempFolder folder;
  const auto memory = std::make_shared<KvBudget>(4 * layout.page_bytes());
  const auto file = std::make_shared<KvFile>(folder.path(), 1 << 26, memory);
  const auto cache = BlocksText(geometry, spec, 2000, std::make_shared<KvPool>(layout, file));
  const auto reference = BlocksText(geometry, spec, 2000);
  EXPECT_EQ(ReadText(*cache, text, 2000, 500), ReadText(*reference, text, 2000, 500));
  EXPECT_EQ(memory->used(), 0);
  const int64_t read_before = cache->Stats().file_read_bytes;
  EXPECT_EQ(ReadText(*cache, text, 2001, 1), ReadText(*reference, text, 2001, 1));
  EXPECT_EQ(memory->used(), cache->index_bytes());
  EXPECT_GT(memory->used(), 0);
  // The index is made once, from all keys. Later steps read only chosen blocks.
  const int64_t made = cache->Stats().file_read_bytes;
  EXPECT_GE(made - read_before, 20 * layout.page_bytes());
  EXPECT_EQ(ReadText(*cache, text, 2002, 1), ReadText(*reference, text, 2002, 1));
  EXPECT_LE(cache->Stats().file_read_bytes - made, 8 * cache->cache().layout().page_bytes());
}

// Keys to be weighed are announced to the file, whether they are seen or not.
TEST(BlocksPolicyMemory, ScoredKeysComeFromAFile) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0});
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const TestText text(geometry, 2100, 3);
  const TempFolder folder;
  for (const char* spec :
       {"blocks:second_block_count=10,local_windows_len=64,top_p=0.001,head_select_mode=SHARED",
        "blocks:second_block_count=1,local_windows_len=64,head_select_mode=SHARED,"
        "preselect_block_count=10,preselect_block=True"}) {
    const auto memory = std::make_shared<KvBudget>(4 * layout.page_bytes());
    const auto file = std::make_shared<KvFile>(folder.path(), 1 << 26, memory);
    const auto cache =
        BlocksText(geometry, spec, 2000, std::make_shared<KvPool>(layout, file), 2001);
    ReadText(*cache, text, 2002, 500);
    const int64_t before = cache->Stats().file_read_bytes;
    ReadText(*cache, text, 2003, 1);
    EXPECT_LE(cache->Stats().met_keys, 4 * 64 * geometry.shape.kv_heads);
    EXPECT_GE(cache->Stats().file_read_bytes - before, 8 * layout.page_bytes()) << spec;
  }
}

}  // namespace
}  // namespace godwit::blocks_memory_test
