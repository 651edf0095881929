#include "ops/blocks/select_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"
#include "kernels/kernel_test_support.h"

namespace godwit::select_blocks_test {
namespace {

constexpr int64_t kLayer = 1;
constexpr int64_t kIndexed[] = {kLayer};
using Chosen = std::vector<std::vector<int32_t>>;  // for each choice

// A text's blocks, and a query whose numbers are exact in int8.
struct Problem {
  Problem(AttentionGeometry of_model, const ops::BlockShape& shape, int64_t blocks, uint32_t seed)
      : geometry(std::move(of_model)),
        cache(std::make_shared<KvPool>(LayoutOf(geometry, DType::kBF16))),
        index(shape, cache.shared_pool(), kIndexed),
        position(blocks * shape.tokens + 99) {
    // Keys lie off zero, so that the spread carries information of its own.
    ReadKeysOf(
        cache, blocks * shape.tokens, [&](int64_t layer, int64_t head, int64_t p, int64_t d) {
          return RandomKey(seed, layer, head, p, d) + RandomKey(seed + 1, layer, head, p / 64, d);
        });
    FillIndex(blocks);
    // Each head has its own size: some heads prefer few parts, others hardly any.
    kernels::RandomFloats random(seed);
    const int64_t dim = geometry.shape.head_dim;
    for (int64_t head = 0; head < geometry.shape.heads; ++head) {
      const float step = std::ldexp(1.0f, static_cast<int>(head % 3) - 7);
      q.push_back(127 * step);
      for (int64_t d = 1; d < dim; ++d) {
        q.push_back(static_cast<float>(random.Integer(-127, 127)) * step);
      }
    }
  }

  void FillIndex(int64_t blocks) {
    StepRunner runner;
    index.Reserve(blocks);
    index.Fill(runner.exec(), kLayer, cache.View(kLayer), blocks, blocks);
  }

  Chosen Select(StepRunner& runner, const ops::BlockChoice& choice, int64_t choices) const {
    const ops::AttentionShape& shape = geometry.shape;
    const Exec exec = runner.exec();
    Workspace::Scope scope(exec.workspace);
    const auto queries = exec.workspace.Matrix<float>(shape.heads, shape.head_dim);
    for (int64_t head = 0; head < shape.heads; ++head) {
      std::copy_n(q.data() + head * shape.head_dim, shape.head_dim, queries.Row(head));
    }
    const auto chosen = exec.workspace.Matrix<int32_t>(choices, choice.count);
    ops::SelectBlocks(exec, geometry.shape, geometry.alibi, index.View(kLayer), queries, position,
                      choice, chosen);
    Chosen result;
    for (int64_t i = 0; i < choices; ++i) {
      result.emplace_back(chosen.RowSpan(i).begin(), chosen.RowSpan(i).end());
    }
    return result;
  }

  AttentionGeometry geometry;
  KvCache cache;
  BlockIndex index;
  int64_t position;
  std::vector<float> q;  // [heads, head_dim]
};

// The definition of the header in double: log shares of a head's attention, or its scores.
std::vector<double> Shares(const Problem& problem, int64_t head, int64_t parts, bool scores) {
  const AttentionGeometry& geometry = problem.geometry;
  const ops::AttentionShape& shape = geometry.shape;
  const int64_t kv_head = head * shape.kv_heads / shape.heads;
  const int64_t part_tokens = problem.index.shape().part_tokens();
  std::vector<double> shares;
  double sum = 0;
  for (int64_t part = 0; part < parts; ++part) {
    const PartVector vector = VectorAt(problem.index.View(kLayer).parts, kv_head, part);
    double score = 0;
    for (int64_t d = 0; d < problem.index.View(kLayer).parts.width; ++d) {
      const int64_t i = head * shape.head_dim + d % shape.head_dim;
      const double q = problem.q[i];
      score += (d < shape.head_dim ? q : std::abs(q)) * vector.integers[d];
    }
    score *= double{shape.scale} * vector.scale;
    if (!geometry.alibi.slopes.empty()) {
      const auto last = static_cast<float>((part + 1) * part_tokens - 1);
      const auto rounded = [&](float x) { return geometry.alibi.in_bf16 ? ToFloat(ToBF16(x)) : x; };
      const float slope = rounded(geometry.alibi.slopes[head]);
      score += double{geometry.alibi.scale} * rounded(slope * rounded(last));
    }
    shares.push_back(score);
    sum += std::exp(score);
  }
  for (double& share : shares) share -= scores ? 0 : std::log(sum);
  return shares;
}

struct Expected {
  Chosen chosen;
  double margin;  // between the worst chosen and the best other block
};

Expected Oracle(const Problem& problem, const ops::BlockChoice& choice, int64_t choices) {
  const int64_t parts = problem.index.shape().parts;
  const int64_t heads = problem.geometry.shape.heads / choices;
  Expected expected{.chosen = {}, .margin = std::numeric_limits<double>::infinity()};
  for (int64_t i = 0; i < choices; ++i) {
    std::vector<double> worth(choice.last, -1e9), sums(choice.last * parts);
    for (int64_t head = i * heads; head < (i + 1) * heads; ++head) {
      const auto shares = Shares(problem, head, choice.last * parts, choice.sums);
      for (int64_t part = 0; part < choice.last * parts; ++part) {
        double& block = worth[part / parts];
        sums[part] += shares[part];
        block = std::max(block, shares[part]);
      }
    }
    if (choice.sums) {
      for (int64_t block = 0; block < choice.last; ++block) {
        const auto of_block = sums.begin() + block * parts;
        worth[block] = *std::max_element(of_block, of_block + parts);
      }
    }
    std::vector<int32_t> order;
    for (int64_t block = choice.first; block < choice.last; ++block) {
      order.push_back(static_cast<int32_t>(block));
    }
    const auto worth_of = [&](int32_t block) { return worth[block]; };
    std::ranges::stable_sort(order, std::ranges::greater{}, worth_of);
    const auto count = static_cast<size_t>(choice.count);
    if (count < order.size()) {
      expected.margin =
          std::min(expected.margin, worth_of(order[count - 1]) - worth_of(order[count]));
    }
    order.resize(count);
    if (choice.ranked) {
      // Scores in log2 are compared as floats: near ones come in any order.
      for (size_t at = 1; at < count; ++at) {
        expected.margin = std::min(expected.margin, worth_of(order[at - 1]) - worth_of(order[at]));
      }
    } else {
      std::ranges::sort(order);
    }
    expected.chosen.push_back(order);
  }
  return expected;
}

AttentionGeometry Model(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return TestGeometry(heads, kv_heads, head_dim, 0, {0, 0});
}

class SelectBlocksTest : public kernels::IsaTest {
 protected:
  void ExpectOracle(const Problem& problem, const ops::BlockChoice& choice) {
    for (const int64_t choices : {int64_t{1}, problem.geometry.shape.kv_heads}) {
      const Expected expected = Oracle(problem, choice, choices);
      ++asked_;
      if (expected.margin < 1e-4) continue;
      ++sure_;
      for (const int threads : {1, 2}) {
        StepRunner runner(threads, table());
        EXPECT_EQ(problem.Select(runner, choice, choices), expected.chosen)
            << choice.count << " of [" << choice.first << ", " << choice.last << "), "
            << problem.index.shape().parts << " parts each, " << choices << " choices, " << threads
            << " threads";
      }
    }
  }
  void TearDown() override { EXPECT_GE(sure_ * 10, asked_ * 9); }

  int asked_ = 0, sure_ = 0;
};

// Some of the 40 blocks lie in the last tile behind the choice. 40 blocks of 64 parts make three
// tasks.
TEST_P(SelectBlocksTest, ChoosesTheLargestShares) {
  uint32_t seed = 0;
  for (const ops::RepresentativeKind& kind : ops::kRepresentatives) {
    if (kind.type == ops::RepresentativeType::kSign) continue;  // score_blocks_test.cc
    for (const int64_t parts : {1, 4, 64}) {
      const Problem problem(Model(6, 2, 12), {.type = kind.type, .tokens = 64, .parts = parts}, 40,
                            ++seed);
      for (const ops::BlockChoice& choice :
           {ops::BlockChoice{0, 40, 7}, {1, 37, 1}, {1, 37, 7}, {5, 37, 31}}) {
        ExpectOracle(problem, choice);
      }
    }
  }
}

TEST_P(SelectBlocksTest, SumsOfScoresAndBlocksInOrderOfTheirWorth) {
  uint32_t seed = 50;
  for (const int64_t parts : {1, 4}) {
    const ops::BlockShape shape{
        .type = ops::RepresentativeType::kMean, .tokens = 64, .parts = parts};
    for (const auto& model : {Model(6, 2, 12), Model(3, 3, 24), Model(16, 2, 64)}) {
      const Problem problem(model, shape, 40, ++seed);
      for (const int64_t count : {1, 5}) {
        ExpectOracle(problem, {.first = 1, .last = 37, .count = count, .sums = true});
        ExpectOracle(problem, {.first = 1, .last = 37, .count = count, .ranked = true});
        ExpectOracle(problem,
                     {.first = 2, .last = 39, .count = count, .sums = true, .ranked = true});
      }
    }
  }
}

TEST_P(SelectBlocksTest, MatchesTheOracleForEveryModelAndBlockSize) {
  uint32_t seed = 100;
  for (const int64_t tokens : {128, 256}) {
    const ops::BlockShape shape{
        .type = ops::RepresentativeType::kMeanStd, .tokens = tokens, .parts = 8};
    for (const auto& model : {Model(1, 1, 5), Model(3, 3, 24), Model(16, 2, 64), Model(7, 1, 3)}) {
      ExpectOracle(Problem(model, shape, 12, ++seed), {.first = 1, .last = 11, .count = 4});
    }
  }
}

// ALiBi places a part at its last key.
TEST_P(SelectBlocksTest, WithAlibi) {
  uint32_t seed = 200;
  for (const bool in_bf16 : {false, true}) {
    for (const int64_t parts : {1, 4, 64}) {
      const ops::BlockShape shape{
          .type = ops::RepresentativeType::kMeanStd, .tokens = 64, .parts = parts};
      const Problem problem(WithAlibi(Model(4, 2, 12), in_bf16), shape, 30, ++seed);
      for (const int64_t count : {1, 5, 20}) {
        ExpectOracle(problem, {.first = 2, .last = 29, .count = count});
      }
    }
  }
}

TEST_P(SelectBlocksTest, MatchesTheOracleForManyBlocks) {
  const ops::BlockShape shape{.type = ops::RepresentativeType::kMean, .tokens = 64, .parts = 1};
  const Problem problem(Model(2, 2, 4), shape, 300, 250);
  for (const ops::BlockChoice& choice : {ops::BlockChoice{0, 300, 1},
                                         {3, 290, 5},
                                         {0, 300, 18},
                                         {1, 300, 19},
                                         {7, 299, 60},
                                         {0, 300, 200}}) {
    ExpectOracle(problem, choice);
  }
}

TEST_P(SelectBlocksTest, AllThatThereAre) {
  const Problem problem(Model(4, 2, 12), ops::BlockShape{}, 9, 300);
  StepRunner runner(1, table());
  const std::vector<int32_t> all = {3, 4, 5, 6, 7, 8};
  EXPECT_EQ(problem.Select(runner, {.first = 3, .last = 9, .count = 6}, 2), Chosen({all, all}));
}

TEST_P(SelectBlocksTest, TheEarlierOfEquals) {
  for (const float key : {0.0f, 0.5f, kernels::kNan}) {
    Problem problem(Model(4, 2, 12), ops::BlockShape{}, 1, 400);
    ReadKeysOf(problem.cache, 30 * 64, [&](auto...) { return key; });
    problem.FillIndex(31);
    StepRunner runner(1, table());
    const std::vector<int32_t> first = {3, 4, 5, 6};
    EXPECT_EQ(problem.Select(runner, {.first = 3, .last = 31, .count = 4}, 1), Chosen({first}))
        << "keys of " << key;
  }
}

// The first head scores around 400 and the second around 0, but the second is surer.
TEST_P(SelectBlocksTest, SharesDoNotDependOnTheLengthOfVectors) {
  constexpr int64_t kBlocks = 20, kSure = 13;
  Problem problem(Model(2, 2, 4),
                  {.type = ops::RepresentativeType::kMean, .tokens = 64, .parts = 1}, 1, 500);
  problem.q = {1, 0, 0, 0, 1, 0, 0, 0};
  problem.cache.Truncate(0);
  problem.index.Truncate(0);
  ReadKeysOf(problem.cache, kBlocks * 64, [](int64_t, int64_t head, int64_t p, int64_t) {
    const int64_t block = p / 64;
    if (head == 0) return 1000.0f + (block == 4 ? 8.0f : 0.0f);
    return block == kSure ? 10.0f : 0.0f;
  });
  problem.FillIndex(kBlocks);
  StepRunner runner(1, table());
  EXPECT_EQ(problem.Select(runner, {.first = 0, .last = kBlocks, .count = 1}, 1),
            Chosen({{kSure}}));
}

using kernels::IsaPointers;
using kernels::IsaTestName;
GODWIT_FOR_EVERY_ISA(SelectBlocksTest);

}  // namespace
}  // namespace godwit::select_blocks_test
