#include "bench/rank_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "base/test_support.h"
#include "bench/suite_texts.h"
#include "bench/work.h"
#include "dist/local.h"
#include "model/loader.h"
#include "model/shape_test_support.h"
#include "model/shapes.h"
#include "model/synthetic_weights.h"

namespace godwit::bench::rank_time_test {
namespace {

// The result of a prompt at a depth, by the time of a multiply-add in matrices and in attention.
TestResult Prompt(const DecoderSpec& spec, int64_t tokens, int64_t depth, double per_matrix,
                  double per_attention) {
  const auto matrices = static_cast<double>(MultiplyAdds(spec, tokens, 1, 0));
  const auto attention =
      static_cast<double>(MultiplyAdds(spec, 0, 0, tokens * depth * spec.kv_heads));
  const auto count = static_cast<double>(tokens);
  const double seconds = matrices * per_matrix + attention * per_attention;
  return {.test = {.prompt_tokens = tokens, .depth_tokens = depth},
          .tokens_per_second = {count / seconds},
          .work_per_token = (matrices + attention) / count};
}

TestResult Answer(int64_t depth, double seconds) {
  return {.test = {.predict_tokens = 8, .depth_tokens = depth},
          .tokens_per_second = {1 / seconds},
          .kv_read_bytes_per_token = 100.0 * static_cast<double>(depth)};
}

TEST(FitHost, RecoversTheHostTimes) {
  const DecoderSpec spec = SmallShape();
  const std::vector<TestResult> tests = {
      Prompt(spec, 512, 0, 3e-12, 5e-12), Prompt(spec, 512, 1000, 3e-12, 5e-12),
      Prompt(spec, 512, 4000, 3e-12, 5e-12), Answer(0, 0.02), Answer(1000, 0.03)};
  const HostTimes times = FitHost(spec, tests);
  EXPECT_NEAR(times.per_matrix_multiply_add, 3e-12, 1e-18);
  EXPECT_NEAR(times.per_attention_multiply_add, 5e-12, 1e-18);
  ASSERT_TRUE(times.per_token);
  EXPECT_NEAR(*times.per_token, 0.02, 1e-9);
  EXPECT_NEAR(times.per_kv_byte, 1e-7, 1e-13);
  EXPECT_LT(times.worst_error, 1e-6);

  EXPECT_FALSE(FitHost(spec, std::span(tests).first(4)).per_token);
  EXPECT_THROW(FitHost(spec, std::span(tests).first(1)), Error);
  EXPECT_THROW(FitHost(spec, std::vector{tests[1], tests[1], tests[3]}), Error);
}

TEST(FitHost, ReportsTheWorstError) {
  const DecoderSpec spec = SmallShape();
  std::vector<TestResult> tests = {Prompt(spec, 512, 0, 3e-12, 5e-12),
                                   Prompt(spec, 512, 1000, 3e-12, 5e-12),
                                   Prompt(spec, 512, 4000, 3e-12, 5e-12)};
  tests[1].tokens_per_second[0] *= 0.8;
  const HostTimes times = FitHost(spec, tests);
  EXPECT_GT(times.worst_error, 0.05);
  EXPECT_LT(times.worst_error, 0.2);
}

// No time is negative, whatever was measured.
TEST(FitHost, FittedTimesAreNeverNegative) {
  const DecoderSpec spec = SmallShape();
  const HostTimes faster_behind =
      FitHost(spec, std::vector{Prompt(spec, 512, 0, 3e-12, 0), Prompt(spec, 512, 4000, 1e-12, 0)});
  EXPECT_EQ(faster_behind.per_attention_multiply_add, 0);
  EXPECT_GT(faster_behind.per_matrix_multiply_add, 0);
}

// The suite's measurements on every rank.
std::vector<SuiteResult> Measure(const std::string& prefill, int ranks,
                                 const std::vector<TestCase>& cases) {
  LocalWorld world(ranks);
  const DecoderSpec spec = SmallShape();
  ThreadPool pool(1);
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {});
  std::vector<SuiteResult> results(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto communicator = world.Rank(rank);
      const SuiteOptions options = {
          .cases = cases,
          .policy = {.kv_type = DType::kI8, .prefill = prefill, .ranks = communicator},
          .ranks = communicator,
          .chunk_tokens = 50,
          .isa = &kernels::SelectIsa(""),
          .rounds = 2,
          .fill_kv = ranks == 3};
      CheckMemory(spec, options, 0);
      results[rank] = RunSuite(*model, options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

double SentBytes(const TestResult& result) {
  double bytes = 0;
  for (const RankUse& rank : result.ranks) bytes += rank.sent_bytes;
  return bytes;
}

// A multiply-add takes a second and bytes take no time. The model's time is the multiply-adds of
// the rank with most of a context. The suite's prompts have one token more, the question.
TEST(RankTime, CountsWhatRanksDoAndSend) {
  const DecoderSpec spec = SmallShape();
  const auto layers = static_cast<double>(spec.layers);
  const KvLayout layout = LayoutOf(Geometry(spec), DType::kI8);
  const HostTimes times = {
      .per_matrix_multiply_add = 1, .per_attention_multiply_add = 1, .per_token = 0};
  const Network network = {.bytes_per_second = std::numeric_limits<double>::infinity(),
                           .seconds = 0};
  for (const char* prefill :
       {"ring:chunk=64", "star:block=100", "star:block=128,anchor=20", "star:block=200"}) {
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(prefill);
      constexpr int64_t kContext = 700, kAnswer = 5;
      const auto results = Measure(
          prefill, ranks,
          {{.prompt_tokens = kContext + 1}, {.predict_tokens = kAnswer, .depth_tokens = kContext}});
      const auto time = TimeOf(spec, layout, prefill, kContext, ranks, times, network);
      ASSERT_TRUE(time);
      double most = 0;
      for (const SuiteResult& result : results) {
        EXPECT_EQ(result.tests[0].logits_hash, results[0].tests[0].logits_hash);
        EXPECT_EQ(result.tests[1].logits_hash, results[0].tests[1].logits_hash);
        EXPECT_TRUE(result.tests[0].logits_agree && result.tests[1].logits_agree);
        most = std::max(most, result.tests[0].work_per_token * (kContext + 1));
      }
      // The rank with most of an anchor, which all read together, may not have most of the blocks.
      const bool both = ranks == 3 && prefill == std::string("star:block=200");
      EXPECT_GT(time->read_seconds / most, 0.99);
      EXPECT_LT(time->read_seconds / most, both ? 1.1 : 1.01);
      const std::vector<TestResult>& tests = results[0].tests;
      EXPECT_EQ(std::ssize(tests[0].ranks), ranks);
      EXPECT_DOUBLE_EQ(SentBytes(tests[1]), kAnswer * layers * time->answer_bytes);
      EXPECT_DOUBLE_EQ(SentBytes(tests[0]),
                       layers * (kContext * time->read_bytes + time->answer_bytes));
    }
  }
}

// Ranks that share the weights run the suite, whose sums are sent from each to each, or in shares.
TEST(SharedWeightsTime, CountsWhatRanksDoAndSend) {
  const DecoderSpec spec = SmallShape();
  const auto source = SyntheticWeights(spec, DType::kBF16);
  const HostTimes times = {
      .per_matrix_multiply_add = 1, .per_attention_multiply_add = 1, .per_token = 0};
  const Network network = {.bytes_per_second = std::numeric_limits<double>::infinity(),
                           .seconds = 0};
  constexpr int64_t kContext = 700, kAnswer = 5, kChunk = 300;
  for (const int ranks : {2, 4}) {
    LocalWorld world(ranks);
    std::vector<SuiteResult> results(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        ThreadPool pool(1);
        const auto communicator = world.Rank(rank);
        const auto model = LoadDecoder(spec, *source, pool, {}, {}, communicator);
        const SuiteOptions options = {
            .cases = {{.prompt_tokens = kContext}, {.predict_tokens = kAnswer, .depth_tokens = 64}},
            .policy = {.kv_type = DType::kI8},
            .ranks = communicator,
            .chunk_tokens = kChunk,
            .isa = &kernels::SelectIsa(""),
            .rounds = 2};
        results[rank] = RunSuite(*model, options);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto shared = TimeOfSharedWeights(spec, ResolveTensors(spec, *source), std::nullopt,
                                            LayoutOf(Geometry(spec), DType::kI8), kContext, kChunk,
                                            ranks, times, network);
    double most = 0;
    for (const SuiteResult& result : results) {
      EXPECT_EQ(result.tests[0].logits_hash, results[0].tests[0].logits_hash);
      EXPECT_EQ(result.tests[1].logits_hash, results[0].tests[1].logits_hash);
      EXPECT_TRUE(result.tests[0].logits_agree && result.tests[1].logits_agree);
      most = std::max(most, result.tests[0].work_per_token * kContext);
    }
    EXPECT_NEAR(shared.time.read_seconds / most, 1, 1e-3);
    const auto layers = static_cast<double>(spec.layers);
    EXPECT_DOUBLE_EQ(SentBytes(results[0].tests[0]), layers * kContext * shared.time.read_bytes);
    EXPECT_DOUBLE_EQ(SentBytes(results[0].tests[1]), layers * kAnswer * shared.time.answer_bytes);
  }
}

// Weights and keys are shared out, and experts count as far as tokens meet them.
TEST(SharedWeightsTime, SharesTheWorkAndWaits) {
  const HostTimes times = {.per_matrix_multiply_add = 1e-12,
                           .per_attention_multiply_add = 1e-12,
                           .per_token = 0.08,
                           .per_kv_byte = 1e-10};
  for (const char* shape : {"1b", "moe"}) {
    const DecoderSpec spec = FirstLayers(FindShape(shape), 4);
    const auto source = SyntheticWeights(spec, DType::kBF16);
    const ModelTensors tensors = ResolveTensors(spec, *source);
    const KvLayout layout = LayoutOf(Geometry(spec), DType::kBF16);
    const auto at = [&](int hosts, double bytes_per_second, double seconds) {
      return TimeOfSharedWeights(spec, tensors, std::nullopt, layout, 4096, 512, hosts, times,
                                 {.bytes_per_second = bytes_per_second, .seconds = seconds});
    };
    const auto alone = at(1, 1e15, 1), four = at(4, 1e15, 0), late = at(4, 1e15, 1);
    const auto slow = at(4, 1e9, 0);
    EXPECT_EQ(alone.weight_bytes, LoadedBytes(tensors, std::nullopt));
    EXPECT_EQ(alone.time.wait_seconds, 0);
    EXPECT_EQ(alone.time.answer_bytes, 0);
    EXPECT_LT(four.weight_bytes, alone.weight_bytes * 0.26);
    EXPECT_LT(four.time.read_seconds, alone.time.read_seconds * 0.26);
    EXPECT_LT(*four.time.answer_seconds, *alone.time.answer_seconds * 0.26);
    // A sum for the embedding and two a layer, and the logits: of one message for one token.
    EXPECT_NEAR(*late.time.answer_seconds - *four.time.answer_seconds, 2 * 4 + 2, 1e-9);
    EXPECT_NEAR(slow.time.wait_seconds, slow.time.read_bytes * 4096 * 4 / 4 / 1e9, 1e-3);
  }
}

TEST(RankTime, WaitsForTheNetworkAndForMessages) {
  const DecoderSpec spec = SmallShape();
  const KvLayout layout = LayoutOf(Geometry(spec), DType::kI8);
  const HostTimes times = {.per_matrix_multiply_add = 1e-9,
                           .per_attention_multiply_add = 1e-9,
                           .per_token = 0.01,
                           .per_kv_byte = 1e-9};
  const auto at = [&](double bytes_per_second, double seconds, int hosts) {
    return *TimeOf(spec, layout, "ring:chunk=64", 4096, hosts, times, {bytes_per_second, seconds});
  };
  const ContextTime quick = at(1e15, 0, 4), slow = at(1e5, 0, 4), late = at(1e15, 1, 4);
  EXPECT_LT(quick.wait_seconds, 1e-3);
  EXPECT_NEAR(slow.read_seconds - quick.read_seconds, slow.wait_seconds, 1e-3);
  // One message in each of 2 layers, and 16 rounds, each a group of its own at most.
  EXPECT_GE(late.wait_seconds, 2 * 16);
  EXPECT_DOUBLE_EQ(*late.answer_seconds - *quick.answer_seconds, 2);
  EXPECT_EQ(at(1e5, 1, 1).wait_seconds, 0);
  EXPECT_DOUBLE_EQ(*at(1e5, 1, 1).answer_seconds,
                   0.01 + 1e-9 * 4096 * static_cast<double>(layout.bytes_per_token()));
  EXPECT_LT(quick.read_seconds, at(1e15, 0, 1).read_seconds / 3);
}

TEST(RankTime, IsNoneOfAContextThatIsTooShort) {
  const DecoderSpec spec = SmallShape();
  const KvLayout layout = LayoutOf(Geometry(spec), DType::kI8);
  EXPECT_FALSE(TimeOf(spec, layout, "star:block=64", 128, 3, {}, {1, 1}));
  EXPECT_TRUE(TimeOf(spec, layout, "star:block=64", 129, 3, {}, {1, 1}));
  EXPECT_FALSE(TimeOf(spec, layout, "ring", 127, 2, {}, {1, 1}));
  EXPECT_THROW(TimeOf(spec, layout, "window:64", 4096, 2, {}, {1, 1}), Error);
}

}  // namespace
}  // namespace godwit::bench::rank_time_test
