// Compares ranks that read a context together with one host that reads it alone.
#include "attention/ranks/ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "attention/attention_test_support.h"
#include "dist/local.h"

namespace godwit::ring_test {
namespace {

using testing::HasSubstr;

// The attention outputs at these positions: [tokens, layers * heads * head_dim].
struct Read {
  std::vector<int64_t> positions;
  std::vector<float> out;
  int64_t bytes = 0;
  int64_t sent_bytes = 0;
  std::string error;
};

Read ReadOne(const AttentionGeometry& geometry, const TestText& text, const PolicyOptions& options,
             int64_t question_begin, int threads) {
  const auto cache = NewText(geometry, options);
  cache->SetQuestion(question_begin, question_begin);
  StepRunner runner(threads);
  Read read;
  while (cache->length() < options.context) {
    const int64_t begin = cache->length();
    const auto rows = RowRange(begin, std::min(begin + cache->MaxNextTokens(), options.context));
    const auto out = runner.Read(*cache, text, rows, options.context);
    read.positions.insert(read.positions.end(), rows.begin(), rows.end());
    read.out.insert(read.out.end(), out.begin(), out.end());
  }
  read.bytes = cache->Stats().bytes;
  if (options.ranks != nullptr) read.sent_bytes = options.ranks->sent_bytes();
  return read;
}

std::vector<Read> ReadInRing(int ranks, const AttentionGeometry& geometry, const TestText& text,
                             PolicyOptions options, int64_t chunk, int64_t question_begin,
                             int threads = 1) {
  LocalWorld world(ranks);
  options.prefill = fmt::format("ring:chunk={}", chunk);
  std::vector<Read> reads(ranks);
  std::vector<std::thread> members;
  for (int rank = 0; rank < ranks; ++rank) {
    members.emplace_back([&, rank] {
      PolicyOptions mine = options;
      mine.ranks = world.Rank(rank);
      try {
        reads[rank] = ReadOne(geometry, text, mine, question_begin, threads);
      } catch (const std::exception& error) {
        reads[rank].error = error.what();
      }
    });
  }
  for (std::thread& member : members) member.join();
  return reads;
}

// The context has the same bits, each token on one rank. The question is merged in another order,
// the same on all ranks.
void ExpectAsAlone(const std::vector<Read>& reads, const Read& alone, int64_t question_begin) {
  const int64_t cols = std::ssize(alone.out) / std::ssize(alone.positions);
  std::vector<int> readers(alone.positions.size());
  const auto asked = [&](const Read& read) {
    const auto first =
        std::ranges::lower_bound(read.positions, question_begin) - read.positions.begin();
    return std::vector<float>(read.out.begin() + first * cols, read.out.end());
  };
  const auto expected = asked(alone), answer = asked(reads[0]);
  for (const Read& read : reads) {
    ASSERT_EQ(read.error, "");
    for (size_t i = 0; i < read.positions.size(); ++i) {
      const int64_t p = read.positions[i];
      ++readers[p];
      const auto mine = read.out.begin() + static_cast<int64_t>(i) * cols;
      if (p < question_begin) {
        ASSERT_TRUE(std::equal(mine, mine + cols, alone.out.begin() + p * cols)) << "token " << p;
      }
    }
    EXPECT_EQ(asked(read), answer);
  }
  for (int64_t p = 0; p < question_begin; ++p) ASSERT_EQ(readers[p], 1) << p;
  ASSERT_EQ(answer.size(), expected.size());
  for (size_t i = 0; i < answer.size(); ++i) ASSERT_NEAR(answer[i], expected[i], 3e-6);
}

TEST(Ring, EveryTokenGetsTheBitsOfOneHost) {
  const AttentionGeometry rotary = TestGeometry(4, 2, 16, 8, {0, 100});
  const AttentionGeometry latent = WithValuesInKeys(TestGeometry(4, 1, 16, 8, {0}));
  const AttentionGeometry chunks = InChunks(WithTemperatures(rotary));
  for (const AttentionGeometry& geometry :
       {rotary, chunks, WithAlibi(rotary, /*in_bf16=*/false), latent}) {
    constexpr int64_t kTokens = 2600, kQuestionBegin = 2590;
    const TestText text(geometry, kTokens, 6);
    for (const DType kv_type : {DType::kF32, DType::kBF16, DType::kI8}) {
      const PolicyOptions options = {.kv_type = kv_type, .context = kTokens};
      const Read alone = ReadOne(geometry, text, options, kQuestionBegin, 1);
      for (const int ranks : {1, 2, 3, 4}) {
        for (const int64_t chunk : {64, 192, 1024}) {
          SCOPED_TRACE(fmt::format("{} ranks, chunks of {}", ranks, chunk));
          const auto reads = ReadInRing(ranks, geometry, text, options, chunk, kQuestionBegin, 2);
          ExpectAsAlone(reads, alone, kQuestionBegin);
        }
      }
    }
  }
}

TEST(Ring, ContextsOfAnyLength) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 16, 16, {0});
  for (const int64_t question_begin : {192, 193, 255, 383, 384, 385, 575, 576, 577, 767, 768, 1024,
                                       1151, 1152, 1153, 1300, 1343, 1344}) {
    SCOPED_TRACE(question_begin);
    const PolicyOptions options = {.kv_type = DType::kF32, .context = question_begin + 3};
    const TestText text(geometry, options.context, 7);
    const Read alone = ReadOne(geometry, text, options, question_begin, 1);
    ExpectAsAlone(ReadInRing(3, geometry, text, options, 128, question_begin), alone,
                  question_begin);
  }
}

// Few rows read many stretches, whose states are merged at the end.
TEST(Ring, AFewRowsOverALongContext) {
  const AttentionGeometry geometry = TestGeometry(1, 1, 16, 16, {0});
  const PolicyOptions options = {.kv_type = DType::kF32, .context = 6200};
  const TestText text(geometry, options.context, 8);
  const Read alone = ReadOne(geometry, text, options, 6199, 1);
  ExpectAsAlone(ReadInRing(2, geometry, text, options, 64, 6199), alone, 6199);
}

// A rank keeps its own chunks, and sends each in its own round and all later ones.
TEST(Ring, CountsWhatItKeepsAndSends) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 16, 16, {0});
  const PolicyOptions options = {.kv_type = DType::kI8, .context = 12 * 64 + 1};
  const TestText text(geometry, options.context, 9);
  const int64_t page = LayoutOf(geometry, DType::kI8).page_bytes();
  const auto reads = ReadInRing(3, geometry, text, options, 64, 12 * 64);
  const int64_t rounds = 4, others = 2;
  const int64_t packed_states = geometry.shape.heads * (geometry.shape.head_dim + 2) * 4;
  for (const Read& read : reads) {
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.bytes, 5 * page) << "of the context and the question";
    EXPECT_EQ(read.sent_bytes, others * (page * rounds * (rounds + 1) / 2 + packed_states));
  }
}

// Such a context goes through all ranks, as a question does, and lies with the last one.
TEST(Ring, AShortContextIsReadByAll) {
  const AttentionGeometry geometry = TestGeometry(4, 2, 16, 16, {0});
  const TestText text(geometry, 200, 11);
  const PolicyOptions options = {.kv_type = DType::kF32, .context = 200};
  const Read alone = ReadOne(geometry, text, options, 191, 1);
  for (const Read& read : ReadInRing(3, geometry, text, options, 64, 191)) {
    ASSERT_EQ(read.error, "");
    ASSERT_EQ(read.positions, alone.positions);
    for (size_t i = 0; i < alone.out.size(); ++i) ASSERT_NEAR(read.out[i], alone.out[i], 2e-6);
  }
}

TEST(Ring, ALostRankEndsAll) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 16, 16, {0});
  const TestText text(geometry, 600, 10);
  LocalWorld world(2);
  world.Silence(1);
  PolicyOptions options = {.context = 600, .prefill = "ring:chunk=64", .ranks = world.Rank(0)};
  EXPECT_THAT(ErrorOf([&] { ReadOne(geometry, text, options, 590, 1); }).what(),
              HasSubstr("rank 1 is lost"));
}

TEST(Ring, RefusesWhatItCannotDo) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 16, 16, {0});
  LocalWorld world(3);
  PolicyOptions options = {.context = 600, .prefill = "ring", .ranks = world.Rank(0)};
  for (const char* kv : {"blocks", "sinks:4+60"}) {
    options.spec = kv;
    EXPECT_THAT(ErrorOf([&] { MakePolicy(geometry, options); }).what(),
                HasSubstr("the KV policy dense only"));
  }
}

TEST(Ring, AloneItIsDense) {
  const AttentionGeometry geometry = TestGeometry(2, 1, 16, 16, {0});
  EXPECT_EQ(MakePolicy(geometry, {.context = 600, .prefill = "ring"})->facts().name, "dense");
}

}  // namespace
}  // namespace godwit::ring_test
