#include "ops/blocks/choose_by_votes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"
#include "kernels/kernel_test_support.h"

namespace godwit::choose_by_votes_test {
namespace {

constexpr int64_t kHeads = 4, kKvHeads = 2, kDim = 12, kLayer = 1, kTokens = 640;
using Chosen = std::vector<std::vector<int32_t>>;

float KeyAt(int64_t head, int64_t p, int64_t d) {
  return RandomKey(3, kLayer, head, p, d) + 2 * RandomKey(4, kLayer, head, p / 20, d);
}

struct Text {
  explicit Text(const AttentionGeometry& its_geometry)
      : geometry(its_geometry), cache(std::make_shared<KvPool>(LayoutOf(geometry, DType::kF32))) {
    ReadKeysOf(cache, kTokens,
               [](int64_t, int64_t head, int64_t p, int64_t d) { return KeyAt(head, p, d); });
  }
  AttentionGeometry geometry;
  KvCache cache;
};

AttentionGeometry Plain() { return TestGeometry(kHeads, kKvHeads, kDim, 8, {0, 0}); }

struct Queries {
  explicit Queries(std::vector<int64_t> at) : positions(std::move(at)) {
    for (size_t i = 0; i < positions.size(); ++i) {
      kernels::RandomFloats random(static_cast<uint32_t>(20 + i));
      for (int64_t j = 0; j < kHeads * kDim; ++j) numbers.push_back(2 * random());
    }
  }
  std::vector<ops::PlacedQuery> Placed() const {
    std::vector<ops::PlacedQuery> placed;
    for (size_t i = 0; i < positions.size(); ++i) {
      placed.push_back(
          {positions[i], std::span(numbers).subspan(i * kHeads * kDim, kHeads * kDim)});
    }
    return placed;
  }
  std::vector<int64_t> positions;
  std::vector<float> numbers;
};

// The formulas of SnapKV, in double. attention = softmax(q k / sqrt(d)) with a causal mask; vote =
// attention[first token : last token].sum(queries); pooled = avg_pool1d(vote, 2 * pool + 1), whose
// ends are zeros. A block has the mean of its extended range.
std::vector<double> BlockVotes(const Text& text, const Queries& queries, int64_t head_begin,
                               int64_t head_end, int64_t block_tokens, int64_t pool, int64_t first,
                               int64_t last) {
  std::vector<double> votes(kTokens);
  const AttentionGeometry& geometry = text.geometry;
  for (const ops::PlacedQuery& query : queries.Placed()) {
    for (int64_t head = head_begin; head < head_end; ++head) {
      std::vector<double> weights;
      for (int64_t p = 0; p <= query.position; ++p) {
        double score = 0;
        for (int64_t d = 0; d < kDim; ++d) {
          score += double{query.q[head * kDim + d]} * KeyAt(head / 2, p, d);
        }
        score *= double{geometry.shape.scale};
        if (!geometry.alibi.slopes.empty()) {
          score += double{geometry.alibi.scale} * geometry.alibi.slopes[head] *
                   static_cast<double>(p - query.position);
        }
        weights.push_back(std::exp(score));
      }
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (size_t p = 0; p < weights.size(); ++p) votes[p] += weights[p] / sum;
    }
  }
  std::vector<double> of_blocks;
  for (int64_t block = first; block < last; ++block) {
    double sum = 0;
    for (int64_t p = block * block_tokens - pool; p < (block + 1) * block_tokens + pool; ++p) {
      if (p >= first * block_tokens && p < last * block_tokens) sum += votes[p];
    }
    of_blocks.push_back(sum / static_cast<double>(block_tokens + 2 * pool));
  }
  return of_blocks;
}

Chosen Oracle(const Text& text, const Queries& queries, int64_t choices, int64_t block_tokens,
              int64_t pool, int64_t first, int64_t last, int64_t count) {
  Chosen chosen;
  for (int64_t i = 0; i < choices; ++i) {
    const auto votes = BlockVotes(text, queries, i * kHeads / choices, (i + 1) * kHeads / choices,
                                  block_tokens, pool, first, last);
    std::vector<int32_t> order(votes.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{}, [&](int32_t block) { return votes[block]; });
    order.resize(count);
    for (int32_t& block : order) block += static_cast<int32_t>(first);
    std::ranges::sort(order);
    chosen.push_back(order);
  }
  return chosen;
}

Chosen ByVotes(StepRunner& runner, const Text& text, const Queries& queries, int64_t choices,
               int64_t block_tokens, int64_t pool, int64_t first, int64_t last, int64_t count) {
  const Exec exec = runner.exec();
  Workspace::Scope scope(exec.workspace);
  const auto chosen = exec.workspace.Matrix<int32_t>(choices, count);
  ops::ChooseByVotes(exec, text.geometry.shape, text.geometry.alibi, text.cache.View(kLayer),
                     block_tokens, pool, queries.Placed(), first, last, chosen);
  Chosen result;
  for (int64_t i = 0; i < choices; ++i) {
    result.emplace_back(chosen.RowSpan(i).begin(), chosen.RowSpan(i).end());
  }
  return result;
}

class ChooseByVotesTest : public kernels::IsaTest {};

// With blocks of one token and no pooling that is SnapKV without its pooling, with pool_tokens 3
// SnapKV with a kernel of 7.
TEST_P(ChooseByVotesTest, TakesTheBlocksOfTheLargestPooledVotes) {
  StepRunner one(1, table()), three(3, table());
  const Queries queries({600, 601, 633, 639});
  Chosen last_pooled;
  for (const AttentionGeometry& geometry : {Plain(), WithAlibi(Plain(), /*in_bf16=*/false)}) {
    const Text text(geometry);
    for (const int64_t choices : {1, 2}) {
      for (const auto& [size, pool, first, last, count] : {std::array<int64_t, 5>{1, 0, 3, 577, 20},
                                                           {1, 3, 3, 577, 20},
                                                           {16, 4, 1, 36, 5},
                                                           {64, 16, 1, 9, 3},
                                                           {64, 0, 0, 9, 9},
                                                           {128, 200, 0, 4, 2}}) {
        const auto chosen = ByVotes(one, text, queries, choices, size, pool, first, last, count);
        EXPECT_EQ(chosen, Oracle(text, queries, choices, size, pool, first, last, count))
            << size << " " << pool << " " << choices;
        EXPECT_EQ(ByVotes(three, text, queries, choices, size, pool, first, last, count), chosen);
        if (size == 1 && pool == 3) {
          EXPECT_NE(chosen, last_pooled) << "pooling matters";
        }
        last_pooled = chosen;
      }
    }
  }
}

// A query in the middle of the blocks votes for tokens up to itself alone.
TEST_P(ChooseByVotesTest, QueriesSeeNothingBehindThemselves) {
  StepRunner runner(2, table());
  const Text text(Plain());
  const Queries queries({70, 300});
  EXPECT_EQ(ByVotes(runner, text, queries, 2, 16, 0, 0, 36, 18),
            Oracle(text, queries, 2, 16, 0, 0, 36, 18));
  for (const auto& list : ByVotes(runner, text, Queries({70}), 2, 16, 0, 0, 36, 5)) {
    EXPECT_LE(list.back(), 4);
  }
}

TEST_P(ChooseByVotesTest, NonFiniteVotesCountNothing) {
  StepRunner runner(1, table());
  const Text text(Plain());
  Queries queries({600, 620});
  const auto without = ByVotes(runner, text, Queries({600}), 2, 16, 4, 1, 36, 5);
  queries.numbers[kHeads * kDim] = std::numeric_limits<float>::quiet_NaN();  // of head 0
  const auto with = ByVotes(runner, text, queries, 2, 16, 4, 1, 36, 5);
  const auto whole = ByVotes(runner, text, Queries({600, 620}), 2, 16, 4, 1, 36, 5);
  EXPECT_EQ(with[1], whole[1]);
  queries.numbers[kHeads * kDim + kDim] = std::numeric_limits<float>::quiet_NaN();  // of head 1
  EXPECT_EQ(ByVotes(runner, text, queries, 2, 16, 4, 1, 36, 5)[0], without[0]);
}

using kernels::IsaPointers;
using kernels::IsaTestName;
GODWIT_FOR_EVERY_ISA(ChooseByVotesTest);

}  // namespace
}  // namespace godwit::choose_by_votes_test
