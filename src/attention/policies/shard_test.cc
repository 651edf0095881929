// Star Attention on several ranks beside one: who reads what, and what question and answer get.
#include "attention/policies/shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "attention/attention_test_support.h"
#include "base/error.h"
#include "dist/local.h"

namespace godwit {
namespace {

using testing::HasSubstr;

constexpr int64_t kTokens = 700, kAskFrom = 660, kBlock = 100;

PolicyOptions Star(DType kv_type, int64_t anchor, std::shared_ptr<Communicator> ranks = nullptr) {
  return {.kv_type = kv_type,
          .context = kTokens,
          .prefill = fmt::format("star:block={},anchor={}", kBlock, anchor),
          .ranks = std::move(ranks)};
}

// What the tokens at these positions got: [tokens, layers * heads * head_dim].
struct Read {
  std::vector<int64_t> positions;
  std::vector<float> out;
  int64_t bytes = 0;
};

Read ReadAll(const AttentionGeometry& geometry, const TestText& text, const PolicyOptions& options,
             int64_t chunk, int threads) {
  const auto cache = NewText(geometry, options);
  cache->AskFrom(kAskFrom, kAskFrom);
  StepRunner runner(threads);
  Read read;
  while (cache->length() < kTokens) {
    const int64_t begin = cache->length();
    const auto rows =
        RowRange(begin, std::min({begin + chunk, begin + cache->MostNext(), kTokens}));
    const auto out = runner.Read(*cache, text, rows, chunk);
    read.positions.insert(read.positions.end(), rows.begin(), rows.end());
    read.out.insert(read.out.end(), out.begin(), out.end());
  }
  read.bytes = cache->Stats().bytes;
  return read;
}

std::vector<Read> ReadWithRanks(int ranks, const AttentionGeometry& geometry, const TestText& text,
                                const PolicyOptions& options, int64_t chunk, int threads) {
  LocalWorld world(ranks);
  std::vector<Read> reads(static_cast<size_t>(ranks));
  std::vector<std::thread> members;
  for (int rank = 0; rank < ranks; ++rank) {
    members.emplace_back([&, rank] {
      PolicyOptions mine = options;
      mine.ranks = world.Rank(rank);
      reads[static_cast<size_t>(rank)] = ReadAll(geometry, text, mine, chunk, threads);
    });
  }
  for (std::thread& member : members) member.join();
  return reads;
}

// The part of it that stands at positions >= `from`.
std::vector<float> From(const Read& read, int64_t from) {
  const auto first = std::ranges::lower_bound(read.positions, from) - read.positions.begin();
  const auto cols = std::ssize(read.out) / std::ssize(read.positions);
  return {read.out.begin() + first * cols, read.out.end()};
}

TEST(ShardPolicyTest, QuestionAndAnswerGetWhatOneRankGives) {
  const AttentionGeometry rotary = TestGeometry(6, 2, 12, 8, {0, 0});
  for (const AttentionGeometry& geometry : {rotary, WithAlibi(rotary, /*in_bf16=*/false)}) {
    const TestText text(geometry, kTokens, 6);
    for (const int64_t anchor : {int64_t{0}, int64_t{70}, kBlock}) {
      const PolicyOptions options = Star(DType::kF32, anchor);
      const Read alone = ReadAll(geometry, text, options, 64, 1);
      const auto expected = From(alone, kAskFrom);
      for (const int ranks : {1, 2, 3, 7}) {
        const auto reads = ReadWithRanks(ranks, geometry, text, options, 64, 1);
        const auto answer = From(reads[0], kAskFrom);
        ASSERT_EQ(answer.size(), expected.size());
        for (size_t i = 0; i < answer.size(); ++i) {
          ASSERT_NEAR(answer[i], expected[i], 2e-6) << ranks << " ranks, " << i;
        }
        for (const Read& read : reads) EXPECT_EQ(From(read, kAskFrom), answer);
        if (ranks == 1) {
          EXPECT_EQ(reads[0].out, alone.out);
        }
      }
    }
  }
}

TEST(ShardPolicyTest, ChunksAndThreadsDoNotShow) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0, 0});
  const TestText text(geometry, kTokens, 7);
  for (const DType kv_type : {DType::kF32, DType::kBF16, DType::kI8}) {
    const PolicyOptions options = Star(kv_type, kBlock);
    const auto expected = ReadWithRanks(3, geometry, text, options, 1, 1);
    for (const int threads : {1, 2}) {
      for (const int64_t chunk : {7, 64, 300}) {
        const auto reads = ReadWithRanks(3, geometry, text, options, chunk, threads);
        for (size_t rank = 0; rank < reads.size(); ++rank) {
          EXPECT_EQ(reads[rank].out, expected[rank].out) << chunk;
        }
      }
    }
  }
}

// A rank reads the anchor, its blocks and the question, and keeps what it reads.
TEST(ShardPolicyTest, BlocksAreSpread) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0});
  const TestText text(geometry, kTokens, 8);
  const auto alone = ReadAll(geometry, text, Star(DType::kF32, 50), 64, 1);
  const auto reads = ReadWithRanks(3, geometry, text, Star(DType::kF32, 50), 64, 1);
  const std::vector<std::vector<ops::KvRange>> parts = {
      {{0, 300}, {660, 700}}, {{0, 50}, {300, 500}, {660, 700}}, {{0, 50}, {500, 700}}};
  const int64_t cols = geometry.shape.heads * geometry.shape.head_dim;
  const int64_t page = LayoutOf(geometry, DType::kF32).page_bytes();
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    std::vector<int64_t> positions;
    std::vector<bool> tiles(kTokens / 64 + 1);
    for (const auto& [begin, end] : parts[rank]) {
      for (int64_t p = begin; p < end; ++p) positions.push_back(p);
      for (int64_t p = begin; p < end; ++p) tiles[static_cast<size_t>(p / 64)] = true;
    }
    EXPECT_EQ(reads[rank].positions, positions);
    EXPECT_EQ(reads[rank].bytes, std::ranges::count(tiles, true) * page);
    for (size_t i = 0; i < positions.size() && positions[i] < kAskFrom; ++i) {
      const auto mine = reads[rank].out.begin() + static_cast<int64_t>(i) * cols;
      EXPECT_TRUE(std::equal(mine, mine + cols, alone.out.begin() + positions[i] * cols))
          << "token " << positions[i];
    }
  }
}

TEST(ShardPolicyTest, RefusesWhatRanksCannotShare) {
  LocalWorld world(4);
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0});
  const auto refused = [&](AttentionGeometry of, const PolicyOptions& options) {
    return std::string(ErrorOf([&] { MakePolicy(of, options); }).what());
  };
  PolicyOptions options = Star(DType::kF32, 50, world.Rank(1));
  const auto policy = MakePolicy(geometry, options);
  policy->AskFrom(301, 301);
  EXPECT_THAT(ErrorOf([&] { policy->AskFrom(300, 300); }).what(),
              HasSubstr("300 tokens has 3 blocks of 100, too few for 4 ranks"));
  EXPECT_THAT(ErrorOf([&] { policy->AskFrom(50, 50); }).what(), HasSubstr("has 1 block of 100"));
  AttentionGeometry windows = geometry;
  windows.windows = {40};
  EXPECT_THAT(refused(windows, options), HasSubstr("sliding window"));
  AttentionGeometry learned = geometry;
  learned.learned_positions = kTokens;
  EXPECT_THAT(refused(learned, options), HasSubstr("learned positions"));
  PolicyOptions overlapping = options;
  overlapping.prefill += ",overlap=7";
  EXPECT_THAT(refused(geometry, overlapping), HasSubstr("overlap of 7 tokens"));
  PolicyOptions tailed = options;
  tailed.prefill += ",tail=7";
  EXPECT_THAT(refused(geometry, tailed), HasSubstr("tail of 7 tokens"));
  options.spec = "sinks:4+60";
  EXPECT_THAT(refused(geometry, options), HasSubstr("only dense"));
  options.prefill = "window:7";
  EXPECT_THAT(refused(geometry, options), HasSubstr("by star, not by window:7"));
  options.prefill.clear();
  EXPECT_THAT(refused(geometry, options), HasSubstr("by star, not as one text"));
}

}  // namespace
}  // namespace godwit
