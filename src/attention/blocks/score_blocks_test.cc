#include "attention/blocks/score_blocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"
#include "kernels/kernel_test_support.h"

namespace godwit {
namespace {

constexpr int64_t kTokens = 64 * 9;

// A tile scores as its highest key, of which only signs and a mean magnitude are known. Tables of
// queries have 7 bits: each of a query's groups may be off by half a step.
void ExpectSignsScore(const AttentionGeometry& geometry, int64_t block_tokens,
                      const kernels::KernelTable& kernels, int threads) {
  const KvLayout layout = LayoutOf(geometry, DType::kF32);
  const auto pool = std::make_shared<KvPool>(layout);
  KvCache cache(pool);
  ReadRandomKeys(cache, kTokens, 3);
  const int64_t blocks = kTokens / block_tokens, tiles = blocks * block_tokens / 64;
  const BlockShape shape{
      .type = RepresentativeType::kSign, .tokens = block_tokens, .parts = block_tokens};
  BlockIndex index(shape, pool, std::vector<int64_t>{1});
  ThreadPool threads_of(threads);
  Workspace workspace;
  const Exec exec{.pool = threads_of, .kernels = kernels, .workspace = workspace};
  index.Reserve(blocks);
  index.Fill(exec, 1, cache.View(1), blocks, blocks);
  const int64_t heads = geometry.shape.heads, head_dim = geometry.shape.head_dim;
  std::vector<float> queries(static_cast<size_t>(heads * head_dim));
  kernels::RandomFloats(7).Fill(queries, -1, 1);
  std::vector<float> found(static_cast<size_t>(heads * 64));
  ScoreBlocks(exec, geometry, index, 1, {queries.data(), heads, head_dim, head_dim}, kTokens - 1,
              blocks, {found.data(), heads, 64, 64});
  for (int64_t head = 0; head < heads; ++head) {
    const float* const q = queries.data() + head * head_dim;
    double largest_group = 0;
    for (int64_t d = 0; d < head_dim; d += 4) {
      double sum = 0;
      for (int64_t i = d; i < std::min(d + 4, head_dim); ++i) sum += std::abs(q[i]);
      largest_group = std::max(largest_group, sum);
    }
    const double error = static_cast<double>((head_dim + 3) / 4) * 0.5 * largest_group / 63;
    for (int64_t tile = 0; tile < 64; ++tile) {
      const float score = found[static_cast<size_t>(head * 64 + tile)];
      if (tile >= tiles) {
        EXPECT_EQ(score, -std::numeric_limits<float>::infinity());
        continue;
      }
      double expected = -1e9;
      for (int64_t p = tile * 64; p < (tile + 1) * 64; ++p) {
        double product = 0, magnitude = 0;
        for (int64_t d = 0; d < head_dim; ++d) {
          const float key = RandomKey(3, 1, head * geometry.shape.kv_heads / heads, p, d);
          product += key > 0 ? q[d] : -q[d];
          magnitude += std::abs(key) / static_cast<double>(head_dim);
        }
        expected = std::max(expected, product * magnitude);
      }
      double bias = 0;
      if (!geometry.alibi.slopes.empty()) {
        float distance;
        ops::FillAlibi(geometry.alibi, head, {.query = kTokens - 1, .shift = 0}, tile * 64 + 63,
                       {&distance, 1});
        bias = distance;
      }
      EXPECT_NEAR(score / std::numbers::log2e, expected * double{geometry.shape.scale} + bias,
                  (error + std::abs(expected) / 100) * double{geometry.shape.scale})
          << "head " << head << ", tile " << tile << " of " << head_dim << " dimensions";
    }
  }
}

class ScoreBlocksTest : public kernels::IsaTest {};

TEST_P(ScoreBlocksTest, SignsTellATilesHighestKey) {
  for (const int threads : {1, 2}) {
    for (const int64_t block_tokens : {64, 192}) {
      for (const int64_t head_dim : {8, 24, 128}) {
        ExpectSignsScore(TestGeometry(4, 2, head_dim, 0, {0, 0}), block_tokens, table(), threads);
      }
      ExpectSignsScore(WithAlibi(TestGeometry(3, 3, 16, 0, {0, 0}), false), block_tokens, table(),
                       threads);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, ScoreBlocksTest, testing::ValuesIn(kernels::IsaPointers()),
                         kernels::IsaTestName);

}  // namespace
}  // namespace godwit
