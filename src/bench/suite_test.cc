#include "bench/suite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/machine_memory.h"
#include "base/new_file.h"
#include "base/test_folder.h"
#include "base/test_support.h"
#include "bench/suite_texts.h"
#include "model/archs/all.h"
#include "model/loader.h"
#include "model/packed_file.h"
#include "model/shape_test_support.h"
#include "model/shapes.h"
#include "model/synthetic_weights.h"
#include "weights/hf_config.h"
#include "weights/open_weights.h"

namespace godwit::bench::suite_test {
namespace {

std::unique_ptr<Decoder> SmallModel(DType dtype) {
  const DecoderSpec spec = SmallShape();
  ThreadPool pool(1);
  return LoadDecoder(spec, *SyntheticWeights(spec, dtype), pool, {});
}

class FakeMachine : public Probe {
 public:
  int64_t cache_bytes = 0;

  ReadRate ReadBandwidth(ThreadPool&) override { return {1e9, 1 << 20}; }
  double CacheReadBandwidth() override { return 4e9; }
  int64_t CacheBytes() override { return cache_bytes; }
  MultiplyPeak PeakOf(ThreadPool&, DType weights) override {
    return {weights == DType::kI8 ? "int8_peak" : "f32_peak", 2e9};
  }
  double ForkJoinMicroseconds(ThreadPool& pool) override { return pool.threads(); }
};

SuiteOptions Options(std::vector<TestCase> cases) {
  return {.cases = std::move(cases),
          .policy = {.spec = "dense", .kv_type = DType::kBF16},
          .chunk_tokens = 16,
          .isa = &kernels::SelectIsa(""),
          .rounds = 2};
}

TEST(Suite, LabelsAreThoseOfLlamaBench) {
  EXPECT_EQ((TestCase{.prompt_tokens = 512}).Label(), "pp512");
  EXPECT_EQ((TestCase{.predict_tokens = 128}).Label(), "tg128");
  EXPECT_EQ((TestCase{.predict_tokens = 128, .depth_tokens = 16384}).Label(), "tg128 @ d16384");
  EXPECT_EQ((TestCase{.predict_tokens = 32, .texts = 8}).Label(), "tg32 np8");
  EXPECT_EQ((TestCase{.predict_tokens = 32, .depth_tokens = 4096, .texts = 8}).Label(),
            "tg32 np8 @ d4096");
}

// 40 tokens after 30 others or from the start, read together or one by one, by any number of
// threads. The text is the same, so the logits are, too.
TEST(Suite, HashesAgreeWhereTheTextIsTheSame) {
  const auto model = SmallModel(DType::kBF16);
  const auto result = RunSuite(*model, Options({{.prompt_tokens = 40, .threads = 1},
                                                {.prompt_tokens = 40, .threads = 3},
                                                {.predict_tokens = 40, .threads = 1},
                                                {.predict_tokens = 40, .threads = 2},
                                                {.prompt_tokens = 10, .depth_tokens = 30},
                                                {.predict_tokens = 10, .depth_tokens = 30}}));
  for (const TestResult& test : result.tests) {
    EXPECT_EQ(test.logits_hash, result.tests[0].logits_hash) << test.test.Label();
    EXPECT_TRUE(test.logits_agree);
    EXPECT_EQ(test.tokens_per_second.size(), 2u);
    EXPECT_TRUE(test.fractions.empty());
    EXPECT_EQ(test.policy, "dense");
  }
  EXPECT_TRUE(result.machine.empty());

  const auto other = RunSuite(*model, Options({{.prompt_tokens = 41}}));
  EXPECT_NE(other.tests[0].logits_hash, result.tests[0].logits_hash);
}

// Counts of the small shape by hand. In a layer q and o are 64 x 64, k and v 32 x 64, gate, up and
// down 160 x 64. That is (2 * 64 + 2 * 32 + 3 * 160) * 64 = 43,008 weights, and 86,016 in 2 layers.
// The head has 192 * 64 = 12,288. A key or a value has 2 heads of 16.
TEST(Suite, WorkCountsAreThoseOfTheModel) {
  // bf16. Decode reads 2 * (86,016 + 12,288) = 196,608 bytes of weights for each token. At a depth
  // of 10, 4 tokens see 11 + 12 + 13 + 14 = 50 keys in each of 2 layers. A key and its value take 2
  // * 32 * 2 = 128 bytes. The sum is 12,800 bytes, a token's share 3,200.
  constexpr double kReadBytes = 196'608 + 3'200;
  // A prompt of 20 sees 210 keys in each layer, and 4 heads of 16 multiply each key and each value.
  // The sum is 20 * 86,016 + 12,288 + 2 * 2 * 210 * 64 = 1,786,368 multiply-adds, 89,318.4 for each
  // token.
  constexpr double kMultiplyAdds = 89'318.4;

  // A machine with 1 GB/s and 2 billion multiply-adds a second. By its clock every test takes 2
  // seconds.
  FakeMachine machine;
  SuiteOptions options =
      Options({{.predict_tokens = 4, .depth_tokens = 10}, {.prompt_tokens = 20}});
  options.probe = &machine;
  options.now_ms = [now = 0.0]() mutable { return now += 2000; };
  const auto model = SmallModel(DType::kBF16);
  EXPECT_EQ(model->weight_bytes(), 196'608 + 2 * 192 * 64) << "and an embedding";
  const auto result = RunSuite(*model, options);
  EXPECT_EQ(result.tests[0].limit_kind, LimitKind::kReadBandwidth);
  EXPECT_EQ(result.tests[0].work_per_token, kReadBytes);
  EXPECT_EQ(result.tests[0].tokens_per_second, (std::vector<double>{2, 2}));
  EXPECT_DOUBLE_EQ(result.tests[0].fractions.at(0), 2 * kReadBytes / 1e9);
  EXPECT_EQ(result.tests[1].limit_kind, LimitKind::kMultiplyPeak);
  EXPECT_DOUBLE_EQ(result.tests[1].work_per_token, kMultiplyAdds);
  EXPECT_EQ(result.tests[1].tokens_per_second, (std::vector<double>{10, 10}));
  EXPECT_DOUBLE_EQ(result.tests[1].fractions.at(1), 10 * kMultiplyAdds / 2e9);

  // f32 weights are twice as many bytes, and no more multiplications.
  const auto wide = RunSuite(*SmallModel(DType::kF32), options);
  EXPECT_EQ(wide.tests[0].work_per_token, 2 * 196'608 + 3'200);
  EXPECT_DOUBLE_EQ(wide.tests[1].work_per_token, kMultiplyAdds);
}

// A step reads only the experts that its texts go to.
TEST(Suite, CountsTheExpertsThatAStepReads) {
  const DecoderSpec spec = DescribeModel(HfConfig::Parse(
      R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "num_local_experts": 16, "num_experts_per_tok": 2,
          "vocab_size": 192, "max_position_embeddings": 4096})",
      "mixture"));
  ThreadPool pool(1);
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {});
  const auto result =
      RunSuite(*model, Options({{.predict_tokens = 4}, {.predict_tokens = 4, .texts = 8}}));
  const auto weights_of_a_step = [&](size_t test) {
    const TestResult& of = result.tests[test];
    return (of.work_per_token - of.kv_read_bytes_per_token) * static_cast<double>(of.test.texts);
  };
  constexpr double kExpertBytes = 3 * 96 * 64 * 2;
  const auto one = static_cast<double>(model->step_bytes());
  EXPECT_EQ(weights_of_a_step(0), one);
  EXPECT_GE(weights_of_a_step(1), one + 2 * kExpertBytes) << "eight texts go to more than two";
  EXPECT_LE(weights_of_a_step(1), one + 2 * 14 * kExpertBytes);
}

// Texts that continue at once, from the start or at a depth, with any number of threads. The first
// one also continues alone, and each gets the logits that it has alone.
TEST(Suite, SeveralTextsHaveTheLogitsOfEachAlone) {
  const auto model = SmallModel(DType::kBF16);
  for (const bool fill_kv : {false, true}) {
    for (const char* policy : {"dense", "sinks:4+20"}) {
      SuiteOptions options =
          Options({{.predict_tokens = 10, .depth_tokens = 30},
                   {.predict_tokens = 10, .depth_tokens = 30, .texts = 3},
                   {.predict_tokens = 10, .depth_tokens = 30, .threads = 2, .texts = 8}});
      options.fill_kv = fill_kv;
      options.policy.spec = policy;
      const auto result = RunSuite(*model, options);
      for (const TestResult& test : result.tests) {
        EXPECT_EQ(test.logits_hash, result.tests[0].logits_hash) << policy << test.test.Label();
        EXPECT_TRUE(test.logits_agree) << policy << test.test.Label();
      }
      EXPECT_EQ(result.tests[1].kv_bytes, 3 * result.tests[0].kv_bytes);
    }
  }
}

// A model in which the texts of a batch see each other.
class LeakyModel : public Decoder {
 public:
  explicit LeakyModel(std::unique_ptr<Decoder> model) : Decoder(std::move(*model)) {}
  void Logits(const Exec& exec, MatrixView<const float> hidden,
              MatrixView<float> logits) const override {
    Decoder::Logits(exec, hidden, logits);
    for (int64_t row = 1; row < logits.rows; ++row) logits.Row(row)[0] += logits.Row(row - 1)[0];
  }
};

TEST(Suite, SaysWhereATextIsNotWhatItIsAlone) {
  const LeakyModel model(SmallModel(DType::kF32));
  const auto result =
      RunSuite(model, Options({{.predict_tokens = 4}, {.predict_tokens = 4, .texts = 2}}));
  EXPECT_TRUE(result.tests[0].logits_agree);
  EXPECT_FALSE(result.tests[1].logits_agree);
}

// Weights are read once for all texts, every cache once, and multiplied once for every text. The
// slower of the two is the limit. Numbers as in WorkCountsAreThoseOfTheModel.
TEST(Suite, LargerTimeLimitsSeveralTexts) {
  constexpr double kWeightBytes = 196'608, kCacheBytes = 3'200;
  // 50 keys are 12.5 for each of 4 tokens, in 2 layers, with 4 heads of 16, twice.
  constexpr double kMultiplyAdds = 86'016 + 12'288 + 2 * 2 * 12.5 * 64;
  class Fast : public FakeMachine {
   public:
    double bytes_per_second = 1e9;
    ReadRate ReadBandwidth(ThreadPool&) override { return {bytes_per_second, 1 << 20}; }
  };
  const auto model = SmallModel(DType::kBF16);
  Fast machine;
  SuiteOptions options = Options({{.predict_tokens = 4, .depth_tokens = 10},
                                  {.predict_tokens = 4, .depth_tokens = 10, .texts = 2},
                                  {.predict_tokens = 4, .depth_tokens = 10, .texts = 8}});
  options.probe = &machine;
  options.now_ms = [now = 0.0]() mutable { return now += 2000; };
  auto tests = RunSuite(*model, options).tests;
  EXPECT_EQ(tests[0].limit_name, "read_bandwidth");
  EXPECT_DOUBLE_EQ(tests[0].work_per_token, kWeightBytes + kCacheBytes);
  EXPECT_EQ(tests[1].limit_name, "read_bandwidth");
  EXPECT_DOUBLE_EQ(tests[1].work_per_token, kWeightBytes / 2 + kCacheBytes);
  EXPECT_EQ(tests[1].tokens_per_second, (std::vector<double>{4, 4}));
  EXPECT_DOUBLE_EQ(tests[1].fractions.at(0), 4 * (kWeightBytes / 2 + kCacheBytes) / 1e9);
  // 8 * 101,504 at 2e9 a second is 406 us; 196,608 + 8 * 3,200 bytes at 1e9 a second are 222 us.
  EXPECT_EQ(tests[2].limit_kind, LimitKind::kMultiplyPeak);
  EXPECT_EQ(tests[2].limit_name, "f32_peak");
  EXPECT_EQ(tests[2].limits, std::vector<double>(2, 2e9));
  EXPECT_DOUBLE_EQ(tests[2].work_per_token, kMultiplyAdds);
  EXPECT_EQ(tests[2].tokens_per_second, (std::vector<double>{16, 16}));
  EXPECT_DOUBLE_EQ(tests[2].fractions.at(1), 16 * kMultiplyAdds / 2e9);

  // With a quarter of the bandwidth, reading is the limit.
  machine.bytes_per_second = 0.25e9;
  tests = RunSuite(*model, options).tests;
  EXPECT_EQ(tests[2].limit_name, "read_bandwidth");
  EXPECT_DOUBLE_EQ(tests[2].work_per_token, kWeightBytes / 8 + kCacheBytes);
  // A cache that holds the reads of a step, those of all texts.
  for (const int64_t spare : {-1, 0}) {
    machine.cache_bytes = static_cast<int64_t>(kWeightBytes + 8 * kCacheBytes) + spare;
    tests = RunSuite(*model, options).tests;
    EXPECT_TRUE(tests[0].fits_cache);
    EXPECT_EQ(tests[2].fits_cache, spare == 0);
  }
}

std::unique_ptr<Decoder> ModelOf(const DecoderSpec& spec, DType storage) {
  ThreadPool pool(1);
  return LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {}, storage);
}

int64_t TimesOfAll(const ProfileTimes& times) {
  return std::accumulate(times.busy_ns.begin(), times.busy_ns.end(),
                         times.join_wait_ns + times.one_thread_wait_ns);
}

// Every operation of a step names its part, in every kind of model and under every policy. The
// logits stay, and the parts add up to the whole.
TEST(Suite, AProfileNamesThePartOfEveryOperation) {
  constexpr const char* kMixture =
      R"({"model_type": "mixtral", "hidden_size": 64, "intermediate_size": 96,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "num_local_experts": 16, "num_experts_per_tok": 2,
          "vocab_size": 192, "max_position_embeddings": 4096})";
  constexpr const char* kCapped =
      R"({"model_type": "gemma2", "hidden_size": 64, "intermediate_size": 96, "head_dim": 16,
          "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
          "query_pre_attn_scalar": 16, "sliding_window": 64, "attn_logit_softcapping": 50.0,
          "final_logit_softcapping": 30.0, "hidden_activation": "gelu_pytorch_tanh",
          "vocab_size": 192, "max_position_embeddings": 4096})";
  constexpr const char* kLatent =
      R"({"model_type": "deepseek_v2", "hidden_size": 64, "intermediate_size": 96,
          "moe_intermediate_size": 32, "num_hidden_layers": 2, "first_k_dense_replace": 1,
          "n_routed_experts": 8, "n_shared_experts": 1, "num_experts_per_tok": 2,
          "num_attention_heads": 4, "q_lora_rank": null, "kv_lora_rank": 32,
          "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "v_head_dim": 16, "vocab_size": 192,
          "max_position_embeddings": 4096})";
  const auto spec_of = [](const char* config) {
    return DescribeModel(HfConfig::Parse(config, "profiled"));
  };
  struct Kind {
    std::unique_ptr<Decoder> model;
    const char* policy;
    std::vector<StepPart> parts;
  };
  std::vector<Kind> kinds;
  kinds.push_back({ModelOf(SmallShape(), DType::kI8), "dense", {StepPart::kQuantizing}});
  kinds.push_back({SmallModel(DType::kF32), "sinks:4+20", {}});
  kinds.push_back(
      {SmallModel(DType::kBF16), "blocks", {StepPart::kQuantizing, StepPart::kChoosingKeys}});
  kinds.push_back({ModelOf(spec_of(kMixture), DType::kI8),
                   "dense",
                   {StepPart::kExpertProducts, StepPart::kRouting}});
  kinds.push_back({ModelOf(spec_of(kCapped), DType::kBF16), "dense", {}});
  kinds.push_back({ModelOf(spec_of(kLatent), DType::kBF16), "dense", {StepPart::kExpertProducts}});
  for (Kind& kind : kinds) {
    SuiteOptions options = Options({{.prompt_tokens = 40, .depth_tokens = 200, .threads = 2},
                                    {.predict_tokens = 3, .depth_tokens = 200, .threads = 2}});
    options.policy.spec = kind.policy;
    const auto plain = RunSuite(*kind.model, options);
    EXPECT_FALSE(plain.tests[0].profile);
    options.profile = true;
    const auto result = RunSuite(*kind.model, options);
    kind.parts.insert(kind.parts.end(),
                      {StepPart::kProducts, StepPart::kAttention, StepPart::kRopeAndKv,
                       StepPart::kNorms, StepPart::kActivation, StepPart::kAdds});
    for (size_t test = 0; test < 2; ++test) {
      EXPECT_EQ(result.tests[test].logits_hash, plain.tests[test].logits_hash);
      ASSERT_TRUE(result.tests[test].profile);
      const auto& [times, steps] = *result.tests[test].profile;
      EXPECT_EQ(steps, 2 * 3) << "three chunks of 16 tokens, or three single tokens, twice";
      EXPECT_EQ(times.busy_of(StepPart::kOthers), 0) << "an operation without a part";
      EXPECT_EQ(times.threads, 2);
      EXPECT_EQ(TimesOfAll(times), times.whole_ns());
      for (const StepPart part : kind.parts) EXPECT_GT(times.busy_of(part), 0) << Name(part);
    }
  }
}

TEST(Suite, EveryRoundHasItsLimits) {
  const auto model = SmallModel(DType::kF32);
  FakeMachine machine;
  SuiteOptions options =
      Options({{.prompt_tokens = 8, .threads = 1}, {.predict_tokens = 8, .threads = 2}});
  options.probe = &machine;
  options.rounds = 3;
  const auto result = RunSuite(*model, options);
  for (const TestResult& test : result.tests) {
    const bool prompt = test.test.prompt_tokens > 0;
    EXPECT_EQ(test.limits, std::vector<double>(3, prompt ? 2e9 : 1e9));
    EXPECT_EQ(test.limit_name, prompt ? "f32_peak" : "read_bandwidth");
    EXPECT_EQ(test.fractions.size(), 3u);
  }
  ASSERT_EQ(result.machine.size(), 2u);
  EXPECT_EQ(result.machine[1].threads, 2);
  EXPECT_EQ(result.machine[1].read_buffer_bytes, 1 << 20);
  EXPECT_EQ(result.machine[1].fork_join_us, 2);
  EXPECT_EQ(result.machine[1].f32_multiply_adds_per_second, 2e9);
  EXPECT_EQ(result.machine[1].bf16_multiply_adds_per_second, 0);
  EXPECT_EQ(result.machine[1].int8_multiply_adds_per_second, 2e9);
}

// The head of an int8 checkpoint stays in float; a prompt multiplies in int8.
TEST(Suite, APromptIsHeldAgainstThePeakOfTheLayers) {
  const std::filesystem::path folder = GODWIT_SOURCE_DIR "/tests/golden/int8/llama/channel_token";
  ThreadPool pool(1);
  const auto model = LoadDecoder(DescribeModel(HfConfig::Load(folder / "config.json")),
                                 *OpenWeights(folder), pool, {});
  FakeMachine machine;
  SuiteOptions options = Options({{.prompt_tokens = 8}});
  options.probe = &machine;
  EXPECT_EQ(RunSuite(*model, options).tests[0].limit_name, "int8_peak");
}

// A model in the cache is not read from memory, so it has no limit of memory.
TEST(Suite, ModelInTheCpuCacheHasNoMemoryLimit) {
  const auto model = SmallModel(DType::kBF16);
  FakeMachine machine;
  SuiteOptions options = Options({{.prompt_tokens = 8}, {.predict_tokens = 1}});
  options.probe = &machine;
  const auto bytes = static_cast<int64_t>(RunSuite(*model, options).tests[1].work_per_token);
  for (const int64_t spare : {-1, 0}) {
    machine.cache_bytes = bytes + spare;
    const auto result = RunSuite(*model, options);
    EXPECT_EQ(result.cache_bytes, bytes + spare);
    EXPECT_FALSE(result.tests[0].fits_cache) << "a prompt multiplies";
    EXPECT_EQ(result.tests[0].fractions.size(), 2u);
    EXPECT_EQ(result.tests[1].fits_cache, spare == 0);
    EXPECT_EQ(result.tests[1].fractions.size(), spare == 0 ? 0u : 2u);
    EXPECT_EQ(result.tests[1].limits.size(), 2u);
  }
}

TEST(ReadBuffer, IsLargerThanTheCacheAndASmallPartOfTheMemory) {
  constexpr int64_t kMiB = 1 << 20, kGiB = 1 << 30;
  EXPECT_EQ(ReadBuffer::SizeBytes(8 * kMiB, 16 * kGiB), 128 * kMiB);
  EXPECT_EQ(ReadBuffer::SizeBytes(100 * kMiB, 16 * kGiB), 400 * kMiB);
  EXPECT_EQ(ReadBuffer::SizeBytes(480 * kMiB, 16 * kGiB), kGiB);
  EXPECT_EQ(ReadBuffer::SizeBytes(768 * kMiB, 16 * kGiB), 1536 * kMiB);
  EXPECT_EQ(ReadBuffer::SizeBytes(480 * kMiB, 2 * kGiB), 512 * kMiB);
  EXPECT_EQ(ReadBuffer::SizeBytes(480 * kMiB, 0), kMiB);
}

TEST(Suite, FilledAndForgetfulCaches) {
  const auto model = SmallModel(DType::kF32);
  SuiteOptions options = Options(
      {{.predict_tokens = 4, .depth_tokens = 300}, {.prompt_tokens = 20, .depth_tokens = 300}});
  options.fill_kv = true;
  options.policy.spec = "sinks:4+60";
  int64_t last = 0;
  options.on_progress = [&](int64_t done, int64_t total, std::optional<double> left_ms) {
    EXPECT_EQ(done, ++last);
    EXPECT_EQ(total, 6);
    // The estimate exists once each of the two tests ran twice: to warm up, which is not measured,
    // and once.
    EXPECT_EQ(left_ms.has_value(), done >= 4);
    if (done == total) {
      EXPECT_EQ(left_ms, 0);
    }
  };
  const auto result = RunSuite(*model, options);
  EXPECT_EQ(last, 6);
  for (const TestResult& test : result.tests) EXPECT_TRUE(test.logits_agree);
  EXPECT_EQ(result.tests[0].policy, "sinks:4+60");
  // 65 keys in each of 2 layers, of 2 heads of 16, keys and values of 2 bytes.
  EXPECT_EQ(result.tests[0].work_per_token,
            static_cast<double>(model->step_bytes() + 65 * 2 * 2 * 16 * 2 * 2));
}

// The reported time left after each test.
std::vector<std::optional<double>> LeftMs(SuiteOptions options) {
  std::vector<std::optional<double>> left_ms;
  options.on_progress = [&](int64_t, int64_t, std::optional<double> left) {
    left_ms.push_back(left);
  };
  (void)RunSuite(*SmallModel(DType::kF32), options);
  return left_ms;
}

// Measuring the machine takes time in every remaining round.
TEST(Suite, TimeLeftCountsTheProbes) {
  struct SlowMachine : FakeMachine {
    double clock_ms = 0;
    double ForkJoinMicroseconds(ThreadPool&) override { return clock_ms += 1000; }
  } machine;
  SuiteOptions options = Options({{.predict_tokens = 1}, {.prompt_tokens = 1}});
  options.probe = &machine;
  options.now_ms = [&] { return machine.clock_ms; };
  options.rounds = 3;
  options.warm_up = false;
  const std::vector<std::optional<double>> expected = {std::nullopt, 2000, 1000, 1000, 0, 0};
  EXPECT_EQ(LeftMs(options), expected);
}

// A depth is filled once, unless the policy cannot go back to it. The clock ticks at every look. A
// test that fills takes five seconds of it, one of them for the filling.
TEST(Suite, TimeLeftCountsAKeptDepthOnce) {
  for (const auto& [policy, test_ms] : {std::pair("dense", 4000.0), {"sinks:4+20", 5000.0}}) {
    SuiteOptions options = Options({{.predict_tokens = 200, .depth_tokens = 300}});
    options.policy.spec = policy;
    options.now_ms = [now = 0.0]() mutable { return now += 1000; };
    options.rounds = 3;
    options.warm_up = false;
    EXPECT_EQ(LeftMs(options).front(), 2 * test_ms) << policy;
  }
}

TEST(Suite, OverlargeSuiteIsRefusedWithTheNumbers) {
  const DecoderSpec spec = FindShape("1b");
  // 32 KiB a token: 3 TiB.
  SuiteOptions options = Options({{.predict_tokens = 1, .depth_tokens = 100'000'000}});
  const std::string message =
      ErrorOf(ErrorKind::kMemory, [&] { CheckMemory(spec, options, int64_t{2} << 30); });
  for (const char* part : {"2.0 GiB of weights", "3.0 TiB of KV cache", "100000001 tokens"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  options.cases[0].texts = 2;
  const std::string two =
      ErrorOf(ErrorKind::kMemory, [&] { CheckMemory(spec, options, int64_t{2} << 30); });
  EXPECT_THAT(two, testing::HasSubstr("6.0 TiB of KV cache and "));
  EXPECT_THAT(two, testing::HasSubstr(" of scratch memory (2 texts of up to 100000001 tokens, in "
                                      "BF16) take "));
  options.policy.spec = "sinks:4+60";
  CheckMemory(spec, options, 1);  // it keeps few of the tokens read
  options.cases[0].depth_tokens = 64;
  options.policy.spec = "dense";
  CheckMemory(spec, options, 1);
  ErrorOf(ErrorKind::kMemory, [&] { CheckMemory(spec, options, INT64_MAX / 2); });
}

DecoderSpec RecurrentShape() {
  return DescribeModel(HfConfig::Parse(
      R"({"model_type": "lfm2", "hidden_size": 64, "intermediate_size": 96, "conv_L_cache": 3,
          "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
          "block_auto_adjust_ff_dim": false,
          "layer_types": ["conv", "conv", "full_attention", "conv"],
          "vocab_size": 192, "max_position_embeddings": 4096})",
      "recurrent"));
}

// Texts of all depths are kept, each with its states. Memory of that size is enough, and less is
// refused before anything is read.
TEST(Suite, PlannedMemoryIsWhatItTakes) {
  const DecoderSpec spec = RecurrentShape();
  ThreadPool pool(1);
  const auto model = LoadDecoder(spec, *SyntheticWeights(spec, DType::kBF16), pool, {});
  SuiteOptions options = Options({{.predict_tokens = 4, .depth_tokens = 100},
                                  {.predict_tokens = 4, .depth_tokens = 300, .texts = 2},
                                  {.prompt_tokens = 70}});
  const KvLayout layout = LayoutOf(Geometry(spec), options.policy.kv_type);
  const SuiteMemory memory = MemoryOf(spec, options, 1 << 20);
  EXPECT_EQ(memory.weights, 1 << 20);
  EXPECT_EQ(memory.keys, layout.BytesFor(104) + 2 * layout.BytesFor(304) + layout.BytesFor(70));
  EXPECT_EQ(memory.states, layout.states.BytesFor(104) + 2 * layout.states.BytesFor(304) +
                               layout.states.BytesFor(70));
  EXPECT_GT(memory.states, 0);
  EXPECT_EQ(memory.texts, 4);
  EXPECT_EQ(memory.longest, 304);
  for (const bool fill_kv : {false, true}) {
    options.fill_kv = fill_kv;
    options.kv_pool =
        std::make_shared<KvPool>(layout, std::make_shared<KvBudget>(memory.keys + memory.states));
    CheckMemory(spec, options, 0);
    EXPECT_EQ(RunSuite(*model, options).tests.size(), 3u) << "and nothing is refused";
    options.kv_pool = std::make_shared<KvPool>(
        layout, std::make_shared<KvBudget>(memory.keys + memory.states - layout.page_bytes()));
    ErrorOf(ErrorKind::kMemory, [&] { CheckMemory(spec, options, 0); });
  }
  options.kv_pool = nullptr;
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { CheckMemory(spec, options, int64_t{1} << 60); }),
              testing::HasSubstr(" of states of recurrent layers and "));
}

// Memory in which the weights' file is mapped is not free, although the system says so.
TEST(Suite, PoolLeavesRoomForMappedWeights) {
  const TempFolder folder;
  const auto path = folder.path() / "packed";
  const DecoderSpec spec = SmallShape();
  const auto source = SyntheticWeights(spec, DType::kBF16);
  ThreadPool pool(1);
  NewFile file(path);
  PackedWriter writer(file);
  PackDecoder(spec, *source, pool, {}, std::nullopt, writer);
  writer.Finish({.weights = "auto"});
  file.Commit();
  const auto model = LoadPackedDecoder(spec, *source, pool, std::nullopt, PackedFile(path));
  EXPECT_GT(model->mapped_bytes(), 0);
  EXPECT_EQ(PoolFor(*model, Options({}))->budget().mapped_bytes(), model->mapped_bytes());
}

}  // namespace
}  // namespace godwit::bench::suite_test
