// Question and answer choose blocks of a context on several ranks, each rank among its own blocks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "attention/ranks/ranks_test_support.h"

namespace godwit::star_choice_test {
namespace {

// Six star blocks lie before the question. Each has two blocks to choose among.
constexpr int64_t kStarBlock = 128, kBlock = 64;
constexpr int64_t kInitial = 64, kLocal = 70;

// Two ranks read an anchor of one star block together.
PolicyOptions Blocks(const std::string& settings, DType kv_type = DType::kF32,
                     int64_t anchor = 50) {
  PolicyOptions options = StarOf(kStarBlock, anchor, kv_type);
  options.spec =
      fmt::format("blocks:initial={},local_windows_len={},{}", kInitial, kLocal, settings);
  return options;
}

AttentionGeometry Model() { return TestGeometry(4, 2, 12, 8, {0, 0}); }

TEST(StarChoiceTest, ABudgetForTheWholeContextIsDense) {
  const TestText text(Model(), kTokens, 3);
  for (const DType kv_type : {DType::kF32, DType::kBF16, DType::kI8}) {
    const PolicyOptions dense = StarOf(kStarBlock, 50, kv_type);
    // The last token chooses among eight blocks.
    const PolicyOptions blocks = Blocks("second_block_count=8", kv_type);
    const PolicyOptions fewer = Blocks("second_block_count=7", kv_type);
    for (const int ranks : {2, 3}) {
      const auto expected = ReadWithRanks(ranks, Model(), text, dense, 64, 1);
      const auto reads = ReadWithRanks(ranks, Model(), text, blocks, 64, 1);
      const auto other = ReadWithRanks(ranks, Model(), text, fewer, 64, 1);
      for (size_t rank = 0; rank < reads.size(); ++rank) {
        EXPECT_EQ(reads[rank].out, expected[rank].out) << rank;
        EXPECT_NE(other[rank].out, expected[rank].out) << rank;
      }
    }
  }
}

// Ranks share out the choice of a token: no rank shows a block too many, and no block is left out.
TEST(StarChoiceTest, RanksTogetherShowAsManyKeysAsOne) {
  const TestText text(Model(), kTokens, 4);
  for (const int count : {1, 2, 3, 5, 7}) {
    const PolicyOptions options = Blocks(fmt::format("second_block_count={}", count), DType::kF32,
                                         count % 2 == 0 ? kStarBlock : 50);
    const Read alone = ReadAll(Model(), text, options, 1, 1);
    for (const int ranks : {2, 3, 6}) {
      int64_t met_keys = 0;
      for (const Read& read : ReadWithRanks(ranks, Model(), text, options, 1, 1)) {
        met_keys += read.met_keys;
        EXPECT_EQ(read.index_bytes, read.planned_index_bytes);
      }
      EXPECT_EQ(met_keys, alone.met_keys) << count << " blocks, " << ranks << " ranks";
    }
  }
}

// The `count` blocks in [first, last) of a rank with the most attention of a KV head's two heads.
// sure: false if int8 representatives might have decided.
std::set<int64_t> Best(const TestText& text, int64_t t, int64_t layer, int64_t kv_head,
                       int64_t begin, int64_t first, int64_t last, int64_t count, bool& sure) {
  std::vector<double> worth(last, -1e9);
  std::vector<SeenKey> keys;
  for (int64_t key = begin * kBlock; key < last * kBlock; ++key) keys.push_back({key, key});
  for (const int64_t head : {2 * kv_head, 2 * kv_head + 1}) {
    const auto scores = text.Scores(layer, head, t, t, keys);
    double sum = 0;
    for (const double score : scores) sum += std::exp(score);
    for (size_t i = 0; i < keys.size(); ++i) {
      double& of_block = worth[keys[i].token / kBlock];
      of_block = std::max(of_block, scores[i] - std::log(sum));
    }
  }
  std::vector<std::pair<double, int64_t>> order;
  for (int64_t block = first; block < last; ++block) {
    order.emplace_back(-worth[block], block);
  }
  std::ranges::sort(order);
  const auto n = static_cast<size_t>(count);
  if (0 < n && n < order.size()) sure &= order[n].first - order[n - 1].first > 0.015;
  std::set<int64_t> best;
  for (size_t i = 0; i < n; ++i) best.insert(order[i].second);
  return best;
}

TEST(StarChoiceTest, EachRankChoosesAmongItsOwn) {
  constexpr int64_t kCount = 3, kHeads = 4, kHeadDim = 12;
  // Two or three ranks hold six star blocks. They share out a choice of three blocks among eight.
  struct Part {
    int64_t first, last, share;
  };
  constexpr int64_t kLocalBlock = 9;  // where the window of every asked token begins
  const std::vector<std::vector<Part>> parts_of = {{{0, 6, 1}, {6, kLocalBlock, 2}},
                                                   {{0, 4, 1}, {4, 8, 1}, {8, kLocalBlock, 1}}};
  for (const AttentionGeometry& geometry : {Model(), WithAlibi(Model(), /*in_bf16=*/false)}) {
    const TestText text(geometry, kTokens, 5);
    for (const auto& parts : parts_of) {
      const bool estimate = parts.size() == 3;  // each rank estimates blocks of its own
      const auto reads = ReadWithRanks(
          static_cast<int>(parts.size()), geometry, text,
          Blocks(fmt::format("second_block_count={},representative_type=MEAN,representative_num=64,"
                             "estimate={}",
                             kCount, estimate ? "True" : "False")),
          16, 1);
      const auto out = From(reads[0], kQuestionBegin);
      for (const Read& read : reads) EXPECT_EQ(From(read, kQuestionBegin), out);
      size_t next = 0;
      int checked = 0;
      for (int64_t t = kQuestionBegin; t < kTokens; ++t) {
        ASSERT_LE(t + 1 - kLocal, (kLocalBlock + 1) * kBlock - 1);
        for (int64_t layer = 0; layer < geometry.layers; ++layer) {
          for (int64_t head = 0; head < kHeads; ++head, next += kHeadDim) {
            bool sure = true;
            std::set<int64_t> blocks;
            for (const auto& [begin, last, share] : parts) {
              blocks.merge(Best(text, t, layer, head / 2, begin, std::max<int64_t>(begin, 1), last,
                                share, sure));
            }
            if (!sure) continue;
            std::vector<SeenKey> keys;
            for (int64_t key = 0; key <= t; ++key) {
              const int64_t block = key / kBlock;
              if (block == 0 || block >= kLocalBlock || blocks.contains(block)) {
                keys.push_back({key, key});
              }
            }
            std::vector<std::vector<SeenKey>> others;
            for (int64_t block = 1; estimate && block < kLocalBlock; ++block) {
              if (blocks.contains(block)) continue;
              auto& keys_of = others.emplace_back();
              for (int64_t i = 0; i < kBlock; ++i) {
                keys_of.push_back({block * kBlock + i, block * kBlock + i});
              }
            }
            const auto expected = text.Attend(layer, head, t, t, keys, others);
            for (size_t d = 0; d < expected.size(); ++d) {
              ASSERT_NEAR(out[next + d], expected[d], 2e-6) << "token " << t << " head " << head;
            }
            ++checked;
          }
        }
      }
      EXPECT_GT(checked, (kTokens - kQuestionBegin) * geometry.layers * kHeads / 2);
    }
  }
}

TEST(StarChoiceTest, ChunksAndThreadsChangeNoBits) {
  const TestText text(Model(), kTokens, 6);
  for (const std::string settings :
       {"second_block_count=2", "second_block_count=2,representative_type=MEANSTD",
        "second_block_count=1,head_select_mode=SHARED",
        "second_block_count=3,token_step=5,layer_step=2",
        "second_block_count=2,group_blocks=1,group_count=1", "second_block_count=2,estimate=True",
        "second_block_count=2,group_blocks=2,group_count=1,representative_type=QUEST"}) {
    for (const DType kv_type : {DType::kF32, DType::kI8}) {
      const PolicyOptions options = Blocks(settings, kv_type);
      const auto expected = ReadWithRanks(3, Model(), text, options, 1, 1);
      for (const int threads : {1, 2}) {
        for (const int64_t chunk : {7, 300}) {
          const auto reads = ReadWithRanks(3, Model(), text, options, chunk, threads);
          for (size_t rank = 0; rank < reads.size(); ++rank) {
            EXPECT_EQ(reads[rank].out, expected[rank].out) << settings;
            EXPECT_EQ(From(reads[rank], kQuestionBegin), From(expected[0], kQuestionBegin))
                << settings;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace godwit::star_choice_test
