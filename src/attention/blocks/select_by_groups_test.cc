#include "ops/blocks/select_by_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "attention/attention_test_support.h"
#include "attention/blocks/block_index_test_support.h"
#include "kernels/kernel_test_support.h"
#include "ops/blocks/represent_group.h"

namespace godwit::select_by_groups_test {
namespace {

constexpr int64_t kLayer = 1;
constexpr int64_t kIndexed[] = {kLayer};
using Chosen = std::vector<std::vector<int32_t>>;  // for each choice
using KeyOf = std::function<float(int64_t layer, int64_t head, int64_t position, int64_t d)>;

ops::BlockShape GroupsOf(const ops::BlockShape& blocks, int64_t count) {
  return {.type = ops::GroupType(blocks.type), .tokens = blocks.tokens * count, .parts = 1};
}

ops::BlockShape ShapeOf(ops::RepresentativeType type) {
  ops::BlockShape shape{.type = type, .tokens = 64, .parts = 4};
  if (shape.signs()) shape.parts = 64;
  return shape;
}

// A text's blocks, their groups, and a query.
struct Problem {
  Problem(AttentionGeometry of_model, const ops::BlockShape& shape, int64_t blocks,
          int64_t group_blocks, uint32_t seed, const KeyOf& key_of)
      : geometry(std::move(of_model)),
        cache(std::make_shared<KvPool>(LayoutOf(geometry, DType::kF32))),
        index(shape, cache.shared_pool(), kIndexed),
        groups(GroupsOf(shape, group_blocks), cache.shared_pool(), kIndexed),
        q(geometry.shape.heads * geometry.shape.head_dim),
        position(blocks * shape.tokens + 9) {
    ReadKeysOf(cache, blocks * shape.tokens, key_of);
    StepRunner runner;
    index.Reserve(blocks);
    index.Fill(runner.exec(), kLayer, cache.View(kLayer), blocks, blocks);
    groups.Reserve(blocks / group_blocks);
    groups.FillGroups(runner.exec(), kLayer, index, blocks / group_blocks, blocks / group_blocks);
    kernels::RandomFloats random(seed);
    for (int64_t i = 0; i < q.size(); ++i) q[i] = random(-2, 2);
  }

  // most: groups to open; 0 scores all blocks.
  Chosen Select(StepRunner& runner, const ops::BlockChoice& choice, int64_t choices, int64_t most,
                int64_t* read_bytes = nullptr) const {
    const ops::AttentionShape& shape = geometry.shape;
    const Exec exec = runner.exec();
    Workspace::Scope scope(exec.workspace);
    const MatrixView<const float> queries = {q.data(), shape.heads, shape.head_dim, shape.head_dim};
    const auto chosen = exec.workspace.Matrix<int32_t>(choices, choice.count);
    if (most == 0) {
      ops::SelectBlocks(exec, geometry.shape, geometry.alibi, index.View(kLayer), queries, position,
                        choice, chosen);
    } else {
      const int64_t bytes =
          ops::SelectByGroups(exec, geometry.shape, geometry.alibi, index.View(kLayer),
                              groups.View(kLayer), most, queries, position, choice, chosen);
      if (read_bytes != nullptr) *read_bytes = bytes;
    }
    Chosen result;
    for (int64_t i = 0; i < choices; ++i) {
      result.emplace_back(chosen.RowSpan(i).begin(), chosen.RowSpan(i).end());
    }
    return result;
  }

  AttentionGeometry geometry;
  KvCache cache;
  BlockIndex index, groups;
  kernels::Guarded<float> q;  // [heads, head_dim]
  int64_t position;
};

AttentionGeometry Model(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  return TestGeometry(heads, kv_heads, head_dim, 0, {0, 0});
}

// Keys that hide important blocks: neighbours alike, neighbours unlike, one key in a thousand far
// off. Also all keys equal, and keys that only rounding tells apart.
const KeyOf kTexts[] = {
    [](int64_t layer, int64_t head, int64_t p, int64_t d) {
      return RandomKey(1, layer, head, p / 512, d) + 0.2f * RandomKey(2, layer, head, p, d);
    },
    [](int64_t layer, int64_t head, int64_t p, int64_t d) {
      return RandomKey(3, layer, head, p, d);
    },
    [](int64_t layer, int64_t head, int64_t p, int64_t d) {
      return (p % 1009 == 7 ? 6.0f : 1.0f) * RandomKey(4, layer, head, p, d);
    },
    [](int64_t, int64_t, int64_t, int64_t d) { return static_cast<float>(d % 3) - 0.7f; },
    [](int64_t layer, int64_t head, int64_t p, int64_t d) {
      return 1000 + 1e-3f * RandomKey(5, layer, head, p, d);
    },
};

class SelectByGroupsTest : public kernels::IsaTest {};

// Proves that bounds nest: a search by groups chooses the same blocks as a look at all.
TEST_P(SelectByGroupsTest, BoundsLoseNoBlock) {
  constexpr int64_t kBlocks = 61;
  uint32_t seed = 0;
  for (const KeyOf& text : kTexts) {
    for (const int64_t head_dim : {5, 24}) {
      for (const int64_t group_blocks : {2, 8, 16}) {
        for (AttentionGeometry model :
             {Model(3, 3, head_dim), WithAlibi(Model(2, 2, head_dim), false)}) {
          const int64_t heads = model.shape.heads;
          const Problem problem(std::move(model), ShapeOf(ops::RepresentativeType::kQuest), kBlocks,
                                group_blocks, ++seed, text);
          for (const ops::BlockChoice& choice :
               {ops::BlockChoice{0, 61, 1}, {1, 59, 4}, {2, 55, 20}}) {
            const int64_t most = (choice.count + group_blocks - 1) / group_blocks + 1;
            if (choice.last / group_blocks <= most) continue;
            for (const int threads : {1, 2}) {
              StepRunner runner(threads, table());
              EXPECT_EQ(problem.Select(runner, choice, heads, most),
                        problem.Select(runner, choice, heads, 0))
                  << choice.count << " of " << choice.last << " in groups of " << group_blocks;
            }
          }
        }
      }
    }
  }
}

// Heads that choose together weigh their shares by the bounds of all groups. Opening more groups
// changes nothing.
TEST_P(SelectByGroupsTest, OpeningMoreGroupsAtFirstChangesNothing) {
  uint32_t seed = 100;
  for (const KeyOf& text : kTexts) {
    const Problem problem(Model(6, 2, 12), ShapeOf(ops::RepresentativeType::kQuest), 64, 4, ++seed,
                          text);
    StepRunner runner(2, table());
    for (const int64_t choices : {1, 2}) {
      const ops::BlockChoice choice{1, 63, 5};
      EXPECT_EQ(problem.Select(runner, choice, choices, 3),
                problem.Select(runner, choice, choices, 14));
    }
  }
}

// Most of a long text's index stays unread where neighbouring keys are alike.
TEST_P(SelectByGroupsTest, BoundsSkipDistantGroups) {
  const Problem problem(Model(2, 2, 24), ShapeOf(ops::RepresentativeType::kQuest), 320, 8, 1,
                        kTexts[0]);
  StepRunner runner(1, table());
  int64_t read = 0;
  problem.Select(runner, {1, 320, 4}, 2, 2, &read);
  EXPECT_LT(read, problem.index.ReadBytes(320) * 2 / 3);
}

// A group of keys along the query is opened, for every kind. The blocks chosen are those of a
// search of all.
TEST_P(SelectByGroupsTest, OpensTheGroupsThatStandOut) {
  constexpr int64_t kBlocks = 47, kGroup = 4, kStandsOut = 6;
  for (const ops::RepresentativeKind& kind : ops::kRepresentatives) {
    Problem problem(Model(4, 2, 16), ShapeOf(kind.type), kBlocks, kGroup, 3,
                    [](int64_t layer, int64_t head, int64_t p, int64_t d) {
                      const bool out = p / (64 * kGroup) == kStandsOut && d % 2 == 0;
                      return 0.3f * RandomKey(9, layer, head, p, d) + (out ? 1.0f : 0.0f);
                    });
    for (int64_t i = 0; i < problem.q.size(); ++i) problem.q[i] = i % 2 == 0 ? 1.5f : 0.1f;
    for (const int64_t choices : {1, 2}) {
      StepRunner runner(2, table());
      const Chosen expected(static_cast<size_t>(choices), {24, 25, 26, 27});
      EXPECT_EQ(problem.Select(runner, {1, kBlocks, 4}, choices, 2), expected) << kind.name;
    }
  }
}

// The search always looks at blocks behind the last whole group, and never chooses blocks that are
// seen anyway.
TEST_P(SelectByGroupsTest, LastPartialGroupIsChosenToo) {
  constexpr int64_t kBlocks = 35, kGroup = 8;
  for (const ops::RepresentativeKind& kind : ops::kRepresentatives) {
    Problem problem(Model(2, 2, 16), ShapeOf(kind.type), kBlocks, kGroup, 3,
                    [](int64_t layer, int64_t head, int64_t p, int64_t d) {
                      const bool out = p / 64 == 33 || p / 64 == 0;
                      return 0.3f * RandomKey(9, layer, head, p, d) + (out ? 1.0f : 0.0f);
                    });
    for (int64_t i = 0; i < problem.q.size(); ++i) problem.q[i] = 1.5f;
    StepRunner runner(1, table());
    EXPECT_EQ(problem.Select(runner, {1, kBlocks, 1}, 2, 2), Chosen({{33}, {33}})) << kind.name;
  }
}

TEST_P(SelectByGroupsTest, TheEarlierOfEquals) {
  for (const float key : {0.0f, 0.5f, kernels::kNan}) {
    for (const ops::RepresentativeType type :
         {ops::RepresentativeType::kQuest, ops::RepresentativeType::kSign,
          ops::RepresentativeType::kMeanStd}) {
      const Problem problem(Model(4, 2, 12), ShapeOf(type), 32, 4, 4, [&](auto...) { return key; });
      StepRunner runner(1, table());
      EXPECT_EQ(problem.Select(runner, {.first = 3, .last = 32, .count = 4}, 1, 2),
                Chosen({{3, 4, 5, 6}}))
          << "keys of " << key;
    }
  }
}

using kernels::IsaPointers;
using kernels::IsaTestName;
GODWIT_FOR_EVERY_ISA(SelectByGroupsTest);

}  // namespace
}  // namespace godwit::select_by_groups_test
