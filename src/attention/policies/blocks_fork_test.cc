#include <gtest/gtest.h>

#include <vector>

#include "attention/policies/blocks_test_support.h"

namespace godwit::blocks_fork_test {
namespace {

// Forks share an index, and each goes on with its own keys, as does a text that went back.
void ExpectForksGoOnAsIfAlone(const std::string& settings) {
  const std::string spec = "blocks:initial=0,local_windows_len=1,second_block_count=2," + settings;
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, 1200, 4), other(geometry, 1200, 5);
  const auto alone = [&](const TestText& rest, int64_t from) {
    const auto cache = BlocksText(geometry, spec);
    ReadText(*cache, text, from, 300);
    return ReadText(*cache, rest, 1200, 40);
  };
  const auto cache = BlocksText(geometry, spec);
  ReadText(*cache, text, 900, 100);
  const KvBudget& budget = cache->cache().pool().budget();
  const int64_t used = budget.used();
  EXPECT_EQ(used, cache->Stats().bytes);
  const auto fork = cache->Fork();
  EXPECT_EQ(fork->Stats().bytes, cache->Stats().bytes);
  EXPECT_EQ(budget.used(), used) << "all shared";
  EXPECT_EQ(ReadText(*fork, other, 1200, 7), alone(other, 900));
  const auto back = cache->Fork();
  EXPECT_EQ(ReadText(*cache, text, 1200, 50), alone(text, 900));
  back->Truncate(500);
  EXPECT_EQ(ReadText(*back, other, 1200, 64), alone(other, 500));
  cache->Truncate(700);
  EXPECT_EQ(ReadText(*cache, other, 1200, 64), alone(other, 700));
}

TEST(BlocksPolicyFork, ForkContinuesAsIfAlone) {
  ExpectForksGoOnAsIfAlone("representative_num=128,representative_type=MEANSTD");
  ExpectForksGoOnAsIfAlone("estimate=True");
}

// Both branches of a tree fill a block, each its own.
void ExpectBranchesAreAlone(const char* spec, int64_t length) {
  constexpr int64_t kDrafts = 70;
  const AttentionGeometry geometry = TestGeometry(4, 2, 12, 8, {0, 0});
  const TestText text(geometry, 1000, 8);
  const auto read = [&] {
    auto cache = BlocksText(geometry, spec);
    ReadText(*cache, text, length, 300);
    return cache;
  };
  StepRows step{nullptr, &text, {}, {}};
  std::vector<float> expected;
  StepRunner runner;
  for (const int64_t from : {length, int64_t{800}}) {
    const auto rows = RowRange(from, from + kDrafts);
    const auto chain = runner.Read(*read(), text, rows, kDrafts);
    expected.insert(expected.end(), chain.begin(), chain.end());
    step.parents.push_back(-1);
    for (int64_t row = 1; row < kDrafts; ++row) {
      step.parents.push_back(static_cast<int32_t>(std::ssize(step.parents)) - 1);
    }
    step.rows.insert(step.rows.end(), rows.begin(), rows.end());
  }
  const auto cache = read();
  step.cache = cache.get();
  EXPECT_EQ(runner.Run({&step, 1})[0], expected) << spec;
}

TEST(BlocksPolicyTree, ABranchDoesNotSeeTheBlocksOfAnother) {
  ExpectBranchesAreAlone(
      "blocks:initial=0,local_windows_len=1,second_block_count=4,"
      "representative_num=128,representative_type=MEANSTD",
      645);
  ExpectBranchesAreAlone("blocks:initial=0,local_windows_len=1,second_block_count=4", 645);
  ExpectBranchesAreAlone("blocks:initial=0,local_windows_len=1,second_block_count=4,estimate=True",
                         645);
}

// The first blocks are still drafts, and their mean key is the base of signs.
TEST(BlocksPolicyTree, ABranchHasACentreOfItsOwn) {
  ExpectBranchesAreAlone("blocks:initial=0,local_windows_len=1,second_block_count=1", 100);
}

// Each branch fills a stretch with its own tokens.
TEST(BlocksPolicyTree, BranchDoesNotSeeImportantKeysOfAnother) {
  ExpectBranchesAreAlone(
      "blocks:initial=0,local_windows_len=1,second_block_count=4,representative_type=DYNAMIC", 620);
}

}  // namespace
}  // namespace godwit::blocks_fork_test
