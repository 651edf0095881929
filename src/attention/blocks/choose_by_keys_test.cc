#include "ops/blocks/choose_by_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"
#include "kernels/kernel_test_support.h"

namespace godwit::choose_by_keys_test {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 12, kLayer = 1;
using Chosen = std::vector<std::vector<int32_t>>;

// A text of floats. Some blocks matter to some heads much more than others.
struct Text {
  explicit Text(bool with_alibi, int64_t tokens = 640)
      : geometry(TestGeometry(kHeads, kKvHeads, kDim, 8, {0, 0})),
        cache(std::make_shared<KvPool>(LayoutOf(geometry, DType::kF32))) {
    if (with_alibi) geometry = WithAlibi(geometry, /*in_bf16=*/false);
    ReadKeysOf(cache, tokens, [](int64_t layer, int64_t head, int64_t p, int64_t d) {
      return RandomKey(3, layer, head, p, d) + 2 * RandomKey(4, layer, head, p / 64, d);
    });
  }

  std::vector<float> Query(uint32_t seed) const {
    kernels::RandomFloats random(seed);
    std::vector<float> q;
    for (int64_t i = 0; i < kHeads * kDim; ++i) q.push_back(3 * random());
    return q;
  }

  // The share of each listed block, computed from the keys as floats, before the cache.
  std::vector<double> Shares(std::span<const float> q, int64_t position, int64_t head,
                             const std::vector<int32_t>& blocks, int64_t block_tokens) const {
    std::vector<double> shares;
    for (const int32_t block : blocks) {
      double mass = 0;
      for (int64_t p = block * block_tokens; p < (block + 1) * block_tokens; ++p) {
        double score = 0;
        for (int64_t d = 0; d < kDim; ++d) {
          const float key =
              RandomKey(3, kLayer, head / 2, p, d) + 2 * RandomKey(4, kLayer, head / 2, p / 64, d);
          score += double{q[head * kDim + d]} * key;
        }
        score *= double{geometry.shape.scale};
        if (!geometry.alibi.slopes.empty()) {
          score += double{geometry.alibi.scale} * geometry.alibi.slopes[head] *
                   static_cast<double>(p - position);
        }
        mass += std::exp(score);
      }
      shares.push_back(mass);
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    for (double& share : shares) share /= sum;
    return shares;
  }

  AttentionGeometry geometry;
  KvCache cache;
};

std::vector<int32_t> Ascending(std::vector<int32_t> blocks, size_t padded) {
  std::ranges::sort(blocks);
  blocks.resize(padded, -1);
  return blocks;
}

// The definition of the header, in double.
Chosen Oracle(const Text& text, const std::vector<float>& q, int64_t position,
              const std::vector<std::vector<int32_t>>& blocks, int64_t block_tokens,
              const ops::ShareLimit& limit, size_t most) {
  Chosen chosen;
  const int64_t heads = kHeads / std::ssize(blocks);
  for (size_t i = 0; i < blocks.size(); ++i) {
    std::vector<std::vector<double>> shares;
    std::vector<double> worth(blocks[i].size());
    for (int64_t head = static_cast<int64_t>(i) * heads; shares.size() < size_t(heads); ++head) {
      shares.push_back(text.Shares(q, position, head, blocks[i], block_tokens));
      for (size_t b = 0; b < worth.size(); ++b) worth[b] = std::max(worth[b], shares.back()[b]);
    }
    std::vector<size_t> order(blocks[i].size() - static_cast<size_t>(limit.seen));
    std::iota(order.begin(), order.end(), static_cast<size_t>(limit.seen));
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return worth[a] > worth[b]; });
    std::vector<int32_t> best;
    for (const size_t b : order) {
      bool enough = std::ssize(best) >= limit.least && limit.top_p < 1;
      for (const auto& share : shares) {
        double sum = std::accumulate(share.begin(), share.begin() + limit.seen, 0.0);
        for (const int32_t block : best) {
          sum += share[std::ranges::find(blocks[i], block) - blocks[i].begin()];
        }
        enough = enough && sum >= limit.top_p;
      }
      if (enough || best.size() == most) break;
      best.push_back(blocks[i][b]);
    }
    chosen.push_back(Ascending(best, most));
  }
  return chosen;
}

Chosen ByKeys(StepRunner& runner, const Text& text, std::span<const float> q, int64_t position,
              const std::vector<std::vector<int32_t>>& blocks, int64_t block_tokens,
              const ops::ShareLimit& limit, int64_t most) {
  const Exec exec = runner.exec();
  Workspace::Scope scope(exec.workspace);
  const int64_t choices = std::ssize(blocks);
  const auto named = exec.workspace.Matrix<int32_t>(choices, std::ssize(blocks[0]));
  for (int64_t i = 0; i < choices; ++i) {
    std::ranges::copy(blocks[i], named.Row(i));
  }
  const auto chosen = exec.workspace.Matrix<int32_t>(choices, most);
  ops::ChooseByKeys(exec, text.geometry.shape, text.geometry.alibi, text.cache.View(kLayer),
                    block_tokens, {q.data(), kHeads, kDim, kDim}, position, named, limit, chosen);
  Chosen result;
  for (int64_t i = 0; i < choices; ++i) {
    result.emplace_back(chosen.RowSpan(i).begin(), chosen.RowSpan(i).end());
  }
  return result;
}

class ChooseByKeysTest : public kernels::IsaTest {};

TEST_P(ChooseByKeysTest, TakesTheHeaviestKeysUpToAShare) {
  StepRunner one(1, table()), two(2, table());
  std::set<int64_t> counts;
  for (const bool with_alibi : {false, true}) {
    const Text text(with_alibi);
    for (uint32_t seed = 0; seed < 6; ++seed) {
      const auto q = text.Query(seed);
      for (const double top_p : {1.0, 0.99, 0.9, 0.5, 0.01}) {
        for (const int64_t most : {1, 3, 7}) {
          const ops::ShareLimit limit{
              .seen = 2, .least = std::min<int64_t>(most, 2), .top_p = top_p};
          const Chosen together{{0, 8, 1, 2, 3, 4, 5, 6, 7}};
          const Chosen apart{{0, 9, 7, 2, 1, 3, 4}, {0, 9, 8, 6, 5, 4, 3}};
          for (const Chosen& blocks : {together, apart}) {
            // Blocks below a tile have their tile's scores.
            for (const int64_t size : {64, 16, 1}) {
              const auto expected = Oracle(text, q, 640, blocks, size, limit, size_t(most));
              const auto chosen = ByKeys(one, text, q, 640, blocks, size, limit, most);
              EXPECT_EQ(chosen, expected) << seed << " " << top_p << " " << most << " of " << size;
              EXPECT_EQ(ByKeys(two, text, q, 640, blocks, size, limit, most), chosen);
              counts.insert(std::ranges::count_if(chosen[0], [](int32_t b) { return b >= 0; }));
            }
          }
        }
      }
    }
  }
  EXPECT_GE(counts.size(), 5u) << "shares decide";
}

// Each query shares its attention among the blocks before it.
TEST_P(ChooseByKeysTest, TakesKeysThatMatterToAnyQuery) {
  StepRunner runner(2, table());
  const Text text(/*with_alibi=*/false);
  const int64_t positions[] = {639, 300, 128};
  std::vector<std::vector<float>> queries;
  std::vector<ops::PlacedQuery> placed;
  for (uint32_t i = 0; i < 3; ++i) queries.push_back(text.Query(20 + i));
  for (size_t i = 0; i < 3; ++i) placed.push_back({positions[i], queries[i]});
  for (const auto& [count, size] : {std::pair{1, int64_t{64}}, {3, 64}, {1, 16}, {3, 16}}) {
    for (const int64_t choices : {1, 2}) {
      Chosen expected;
      for (int64_t c = 0; c < choices; ++c) {
        std::vector<double> worth(9);
        for (const ops::PlacedQuery& query : placed) {
          std::vector<int32_t> before(std::min<int64_t>(9, (query.position + 1) / size));
          std::iota(before.begin(), before.end(), 0);
          for (int64_t head = c * kHeads / choices; head < (c + 1) * kHeads / choices; ++head) {
            const auto shares = text.Shares(query.q, query.position, head, before, size);
            for (size_t b = 0; b < shares.size(); ++b) worth[b] = std::max(worth[b], shares[b]);
          }
        }
        std::vector<int32_t> order(8);
        std::iota(order.begin(), order.end(), 1);
        std::ranges::sort(order, [&](int32_t a, int32_t b) { return worth[a] > worth[b]; });
        order.resize(count);
        expected.push_back(Ascending(order, order.size()));
      }
      const Exec exec = runner.exec();
      Workspace::Scope scope(exec.workspace);
      const auto chosen = exec.workspace.Matrix<int32_t>(choices, count);
      ops::ChooseForAll(exec, text.geometry.shape, text.geometry.alibi, text.cache.View(kLayer),
                        size, placed, 1, 9, chosen);
      for (int64_t c = 0; c < choices; ++c) {
        EXPECT_TRUE(std::ranges::equal(chosen.RowSpan(c), expected[c]))
            << count << " of " << choices;
      }
    }
  }
}

using kernels::IsaPointers;
using kernels::IsaTestName;
GODWIT_FOR_EVERY_ISA(ChooseByKeysTest);

}  // namespace
}  // namespace godwit::choose_by_keys_test
