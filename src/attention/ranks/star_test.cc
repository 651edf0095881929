// Star Attention on several ranks beside one: what each rank reads, and what question and answer
// get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "attention/core/kv_cost.h"
#include "attention/ranks/ranks_test_support.h"
#include "base/error.h"

namespace godwit::star_test {
namespace {

using testing::HasSubstr;

constexpr int64_t kBlock = 100;

PolicyOptions Star(DType kv_type, int64_t anchor, std::shared_ptr<Communicator> ranks = nullptr) {
  return StarOf(kBlock, anchor, kv_type, std::move(ranks));
}

TEST(StarTest, QuestionAndAnswerGetWhatOneRankGives) {
  const AttentionGeometry rotary = TestGeometry(6, 2, 12, 8, {0, 0});
  const AttentionGeometry latent = WithValuesInKeys(TestGeometry(4, 1, 28, 8, {0, 0}));
  for (const AttentionGeometry& geometry : {rotary, WithAlibi(rotary, /*in_bf16=*/false), latent}) {
    const TestText text(geometry, kTokens, 6);
    for (const int64_t anchor : {int64_t{0}, int64_t{70}, kBlock}) {
      const PolicyOptions options = Star(DType::kF32, anchor);
      const Read alone = ReadAll(geometry, text, options, 64, 1);
      const auto expected = From(alone, kQuestionBegin);
      for (const int ranks : {1, 2, 3, 7}) {
        const auto reads = ReadWithRanks(ranks, geometry, text, options, 64, 1);
        const auto answer = From(reads[0], kQuestionBegin);
        ASSERT_EQ(answer.size(), expected.size());
        for (size_t i = 0; i < answer.size(); ++i) {
          ASSERT_NEAR(answer[i], expected[i], 2e-6) << ranks << " ranks, " << i;
        }
        for (const Read& read : reads) EXPECT_EQ(From(read, kQuestionBegin), answer);
        if (ranks == 1) {
          EXPECT_EQ(reads[0].out, alone.out);
        }
      }
    }
  }
}

TEST(StarTest, ChunksAndThreadsChangeNoBits) {
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

// Other ranks have read parts of the context, so only the question can be asked again.
TEST(StarTest, ATextGoesBackToItsQuestionAndNoFurther) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0});
  const TestText text(geometry, kTokens, 8);
  for (const Read& read : ReadWithRanks(3, geometry, text, Star(DType::kF32, 50), 64, 1)) {
    EXPECT_EQ(read.restart, kQuestionBegin);
    EXPECT_EQ(read.restart_before, 0);
  }
  EXPECT_EQ(ReadAll(geometry, text, Star(DType::kF32, 50), 64, 1).restart_before,
            kQuestionBegin - 1);
}

// A rank reads the anchor, its blocks and the question, and keeps what it reads.
TEST(StarTest, BlocksAreSpread) {
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
      for (int64_t p = begin; p < end; ++p) tiles[p / 64] = true;
    }
    EXPECT_EQ(reads[rank].positions, positions);
    EXPECT_EQ(reads[rank].bytes, std::ranges::count(tiles, true) * page);
    for (size_t i = 0; i < positions.size() && positions[i] < kQuestionBegin; ++i) {
      const auto mine = reads[rank].out.begin() + static_cast<int64_t>(i) * cols;
      EXPECT_TRUE(std::equal(mine, mine + cols, alone.out.begin() + positions[i] * cols))
          << "token " << positions[i];
    }
  }
}

// Ranks read as much of the anchor together as has whole tiles for each. All keep it.
TEST(StarTest, TheAnchorIsReadTogether) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0, 0});
  const TestText text(geometry, kTokens, 9);
  const KvLayout layout = LayoutOf(geometry, DType::kI8);
  const int64_t cols = 2 * geometry.shape.heads * geometry.shape.head_dim;
  struct Case {
    int ranks;
    int64_t anchor;
    int64_t together;
  };
  for (const auto& [ranks, anchor, together] :
       {Case{2, 330, 256}, Case{2, 200, 128}, Case{3, 200, 192}, Case{2, 127, 0}}) {
    const PolicyOptions options = StarOf(ranks == 2 ? 330 : 220, anchor, DType::kI8);
    const Read alone = ReadAll(geometry, text, options, 64, 1);
    const auto answer = From(alone, kQuestionBegin);
    for (const int threads : {1, 3}) {
      const auto reads = ReadWithRanks(ranks, geometry, text, options, 50, threads);
      std::vector<int> readers(kQuestionBegin);
      for (size_t rank = 0; rank < reads.size(); ++rank) {
        const Read& read = reads[rank];
        for (size_t i = 0; read.positions[i] < kQuestionBegin; ++i) {
          const int64_t p = read.positions[i];
          ++readers[p];
          const auto mine = read.out.begin() + static_cast<int64_t>(i) * cols;
          ASSERT_TRUE(std::equal(mine, mine + cols, alone.out.begin() + p * cols)) << p;
        }
        EXPECT_EQ(From(read, kQuestionBegin), From(reads[0], kQuestionBegin));
        LocalWorld world(ranks);
        PolicyOptions planned = options;
        planned.ranks = world.Rank(static_cast<int>(rank));
        auto [policy, placement] = MakePlacedPolicy(geometry, planned);
        placement.SetQuestion(kQuestionBegin);
        EXPECT_EQ(read.bytes, HeldBytes(*policy, placement, layout, kTokens)) << rank;
      }
      for (int64_t p = 0; p < anchor; ++p) {
        ASSERT_EQ(readers[p], p < together ? 1 : ranks) << p;
      }
      const auto asked = From(reads[0], kQuestionBegin);
      ASSERT_EQ(asked.size(), answer.size());
      for (size_t i = 0; i < answer.size(); ++i) ASSERT_NEAR(asked[i], answer[i], 2e-6);
    }
  }
}

TEST(StarTest, BlocksAreSpreadBySpeed) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0});
  const TestText text(geometry, kTokens, 8);
  PolicyOptions options = Star(DType::kF32, 50);
  const auto even = From(ReadWithRanks(3, geometry, text, options, 64, 1)[0], kQuestionBegin);
  options.prefill += ",by-speed";
  const auto speed = [](double key_seconds) {
    return RankSpeed{
        .best_link = 1, .worst_link = 1, .key_seconds = key_seconds, .kv_bytes = 1 << 30};
  };
  options.rank_speeds = {speed(3), speed(1), speed(1)};
  const auto reads = ReadWithRanks(3, geometry, text, options, 64, 1);
  const std::vector<ops::KvRange> blocks = {{0, 100}, {100, 400}, {400, 660}};
  for (size_t rank = 0; rank < blocks.size(); ++rank) {
    std::vector<int64_t> own;
    for (const int64_t p : reads[rank].positions) {
      if (p < kQuestionBegin && (rank == 0 || p >= 50)) own.push_back(p);
    }
    EXPECT_EQ(own, RowRange(blocks[rank].begin, blocks[rank].end)) << rank;
    const auto answer = From(reads[rank], kQuestionBegin);
    ASSERT_EQ(answer.size(), even.size());
    for (size_t i = 0; i < answer.size(); ++i) ASSERT_NEAR(answer[i], even[i], 2e-6);
  }
}

TEST(StarTest, RefusesWhatRanksCannotShare) {
  LocalWorld world(4);
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0});
  const auto refused = [&](AttentionGeometry of, const PolicyOptions& options) {
    return std::string(ErrorOf([&] { MakePolicy(of, options); }).what());
  };
  PolicyOptions options = Star(DType::kF32, 50, world.Rank(1));
  TextPlacement placement = MakePlacedPolicy(geometry, options).placement;
  placement.SetQuestion(301);
  EXPECT_THAT(ErrorOf([&] { placement.SetQuestion(300); }).what(),
              HasSubstr("300 tokens has 3 blocks of 100, too few for 4 ranks"));
  EXPECT_THAT(ErrorOf([&] { placement.SetQuestion(50); }).what(), HasSubstr("has 1 block of 100"));
  PolicyOptions choosing = Star(DType::kF32, 50, world.Rank(1));
  choosing.prefill = "star:block=128,anchor=50";
  choosing.spec = "blocks";
  EXPECT_THAT(
      ErrorOf([&] { MakePlacedPolicy(geometry, choosing).placement.SetQuestion(300); }).what(),
      HasSubstr("too few for 4 ranks: use fewer ranks, or star:block=64 at most"))
      << "75 tokens would be refused";
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
  EXPECT_THAT(refused(geometry, options), HasSubstr("only dense and blocks"));
  options.spec = "blocks:snapkv";
  EXPECT_THAT(refused(geometry, options), HasSubstr("with preselect_block the question"));
  options.spec = "blocks:top_p=0.9";
  EXPECT_THAT(refused(geometry, options), HasSubstr("top_p is a share of attention"));
  options.spec = "blocks:infllm";
  EXPECT_THAT(refused(geometry, options),
              HasSubstr("with representative_type=DYNAMIC the observers"));
  options.spec = "blocks";
  EXPECT_THAT(refused(geometry, options), HasSubstr("no multiple of the 64 tokens of block_size"));
  options.prefill = "window:7";
  EXPECT_THAT(refused(geometry, options), HasSubstr("ring, star or auto, not by window:7"));
  options.prefill.clear();
  EXPECT_THAT(refused(geometry, options), HasSubstr("ring, star or auto, not as one text"));
}

}  // namespace
}  // namespace godwit::star_test
