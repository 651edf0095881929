#include "ops/blocks/score_blocks.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"
#include "kernels/kernel_test_support.h"

namespace godwit::score_blocks_test {
namespace {

constexpr int64_t kTokens = 64 * 9;

// Some numbers lie far above the others of their dimension. All grow along the text.
float KeyAt(int64_t head, int64_t p, int64_t d) {
  const float key = RandomKey(3, 1, head, p, d);
  return (d % 3 == 0 && key > 0.8f ? 4.0f : key) + 0.2f * static_cast<float>(p / 64 * (d % 5));
}

// The offset of a tile in dimension d.
double OffsetOf(const BlockIndex& index, int64_t head, int64_t tile, int64_t d) {
  const PartVector mean = VectorAt(index.View(1).means, head, tile);
  return mean.integers[d] * double{mean.scale} * double{index.View(1).Levels(head).Unit(d)};
}

struct SignProblem {
  AttentionGeometry geometry;
  int64_t block_tokens = 64;
  int64_t learnt_blocks = 2;
  float outweighs = 1;  // the factor of one dimension of every query
};

// A tile scores the sum of its offset's score and the highest score of the levels of its keys. The
// offset is int8, and its query two int8 vectors. Tables of queries have 7 bits, or 14 where few
// dimensions outweigh the others. Each group of a query, and the sum of all groups, may be off by
// half a step.
void ExpectSignsScore(const SignProblem& problem, const kernels::KernelTable& kernels,
                      int threads) {
  const AttentionGeometry& geometry = problem.geometry;
  const int64_t block_tokens = problem.block_tokens;
  const auto pool = std::make_shared<KvPool>(LayoutOf(geometry, DType::kF32));
  KvCache cache(pool);
  ReadKeysOf(cache, kTokens,
             [](int64_t, int64_t head, int64_t p, int64_t d) { return KeyAt(head, p, d); });
  const int64_t blocks = kTokens / block_tokens, tiles = blocks * block_tokens / 64;
  const ops::BlockShape shape{.type = ops::RepresentativeType::kSign,
                              .tokens = block_tokens,
                              .parts = block_tokens,
                              .learnt_blocks = problem.learnt_blocks};
  BlockIndex index(shape, pool, std::vector<int64_t>{1});
  ThreadPool threads_of(threads);
  Workspace workspace;
  const Exec exec{.pool = threads_of, .kernels = kernels, .workspace = workspace};
  index.Reserve(blocks);
  index.Fill(exec, 1, cache.View(1), blocks, blocks);
  const int64_t heads = geometry.shape.heads, head_dim = geometry.shape.head_dim;
  std::vector<float> queries(heads * head_dim);
  kernels::RandomFloats(7).Fill(queries, -1, 1);
  for (int64_t at = 5; at < std::ssize(queries); at += head_dim) {
    queries[at] *= problem.outweighs;
  }
  std::vector<float> found(heads * 64);
  ops::ScoreBlocks(exec, geometry.shape, geometry.alibi, index.View(1),
                   {queries.data(), heads, head_dim, head_dim}, kTokens - 1, blocks,
                   {found.data(), heads, 64, 64});
  for (int64_t head = 0; head < heads; ++head) {
    const float* const q = queries.data() + head * head_dim;
    const int64_t kv_head = head * geometry.shape.kv_heads / heads;
    const ops::SignLevels levels = index.View(1).Levels(kv_head);
    double widest = 0, largest = 0;
    for (int64_t d = 0; d < head_dim; ++d) {
      largest = std::max(largest, std::abs(double{q[d]} * double{levels.Unit(d)}));
    }
    for (int64_t d = 0; d < head_dim; d += 4) {
      double range = 0;
      for (int64_t i = d; i < std::min(d + 4, head_dim); ++i) {
        range += std::abs(double{q[i]} * (double{levels.above[i]} - levels.below[i]));
      }
      widest = std::max(widest, range);
    }
    const double steps = problem.outweighs > 1 ? 127 * 129 : 127;
    const double error = static_cast<double>((head_dim + 3) / 4 + 1) * 0.51 * widest / steps;
    for (int64_t tile = 0; tile < 64; ++tile) {
      const float score = found[head * 64 + tile];
      if (tile >= tiles) {
        EXPECT_EQ(score, -std::numeric_limits<float>::infinity());
        continue;
      }
      double offset_score = 0, offsets = 0, highest = -1e9;
      std::vector<float> borders;
      for (int64_t d = 0; d < head_dim; ++d) {
        const double offset = OffsetOf(index, kv_head, tile, d);
        offset_score += double{q[d]} * offset;
        offsets += std::abs(offset / double{levels.Unit(d)});
        float sum = 0;
        for (int64_t p = tile * 64; p < (tile + 1) * 64; ++p) sum += KeyAt(kv_head, p, d);
        borders.push_back(sum / 64 + (levels.above[d] + levels.below[d]) / 2);
      }
      for (int64_t p = tile * 64; p < (tile + 1) * 64; ++p) {
        double score_of_levels = 0;
        for (int64_t d = 0; d < head_dim; ++d) {
          const bool above = KeyAt(kv_head, p, d) > borders[d];
          score_of_levels += q[d] * double{above ? levels.above[d] : levels.below[d]};
        }
        highest = std::max(highest, score_of_levels);
      }
      float bias;
      ops::FillAlibi(geometry.alibi, head, {.query = kTokens - 1, .shift = 0}, tile * 64 + 63,
                     {&bias, 1});
      EXPECT_NEAR(
          score / std::numbers::log2e,
          (offset_score + highest) * double{geometry.shape.scale} + double{bias},
          (error + 0.51 * largest / (127 * 254) * offsets + 1e-3) * double{geometry.shape.scale})
          << "head " << head << ", tile " << tile << " of " << head_dim << " dimensions";
    }
  }
}

class ScoreBlocksTest : public kernels::IsaTest {};

TEST_P(ScoreBlocksTest, SignsFindTheHighestKeyOfATile) {
  for (const int threads : {1, 2}) {
    for (const int64_t learnt : {0, 2}) {
      for (const int64_t head_dim : {8, 24, 128}) {
        const AttentionGeometry geometry = TestGeometry(4, 2, head_dim, 0, {0, 0});
        ExpectSignsScore({geometry, 64, learnt}, table(), threads);
        ExpectSignsScore({geometry, 192, learnt}, table(), threads);
      }
      ExpectSignsScore({WithAlibi(TestGeometry(3, 3, 16, 0, {0, 0}), false), 64, learnt}, table(),
                       threads);
    }
  }
}

// Tables of 7 bits for a group would lose the other dimensions.
TEST_P(ScoreBlocksTest, SignsOfDimensionsThatOneOutweighsCountToo) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 512, 0, {0, 0});
  ExpectSignsScore({.geometry = geometry, .outweighs = 200}, table(), 2);
}

INSTANTIATE_TEST_SUITE_P(Isa, ScoreBlocksTest, testing::ValuesIn(kernels::IsaPointers()),
                         kernels::IsaTestName);

}  // namespace
}  // namespace godwit::score_blocks_test
