#include "bench/gpu_work.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/make_policy.h"
#include "attention/policies/prefill_spec.h"
#include "bench/work.h"
#include "model/decoder_gpu_test_support.h"
#include "model/model_test_support.h"
#include "model/shapes.h"

namespace godwit::bench::gpu_work_test {
namespace {

TEST(GpuWork, OfAllLayersIsThatOfTheModel) {
  for (const char* const shape : {"1b", "8b"}) {
    const DecoderSpec spec = FindShape(shape);
    GpuPlan plan{.layers = spec.layers, .head = true, .weight_bytes = 1000};
    const GpuWork all = CountGpuWork(spec, plan);
    EXPECT_EQ(all.layer_multiply_adds, LayerWeights(spec));
    EXPECT_EQ(all.head_multiply_adds, HeadWeights(spec));
    EXPECT_EQ(all.weight_bytes, 1000);
    EXPECT_EQ(all.waits, spec.layers + 2);
    EXPECT_EQ(all.head_bus.in, 4 * spec.hidden_size);
    EXPECT_EQ(all.head_bus.out, 4 * spec.vocab_size);
    plan.head = false;
    plan.layers = spec.layers / 2;
    const GpuWork half = CountGpuWork(spec, plan);
    EXPECT_EQ(2 * half.layer_multiply_adds, all.layer_multiply_adds);
    EXPECT_EQ(half.head_multiply_adds, 0);
    EXPECT_EQ(half.head_bus.both(), 0);
    EXPECT_EQ(half.waits, spec.layers / 2 + 1);
    const int64_t stream = 2 * 4 * spec.hidden_size;
    EXPECT_EQ(2 * (half.layer_bus.both() - stream), all.layer_bus.both() - stream);
  }
}

// Llama 3.1 8B: q, k and v of 6144 numbers come, 4096 of attention go, in each of 32 layers.
TEST(GpuWork, BytesOfTheBusAreThoseOfQueriesKeysValuesAndResults) {
  const DecoderSpec spec = FindShape("8b");
  const GpuWork work = CountGpuWork(spec, {.layers = 32});
  EXPECT_EQ(work.layer_bus.both(), 4 * (32 * (6144 + 4096) + 2 * 4096));
}

// The residual stream comes before the experts of the host, and their results go.
TEST(GpuWork, ExpertsOfTheHostCostTheirRows) {
  DecoderSpec spec = FindShape("8b");
  spec.mlp.experts = 8;
  const GpuWork work = CountGpuWork(spec, {.layers = 32});
  EXPECT_EQ(work.layer_multiply_adds, int64_t{32} * 4096 * (6144 + 4096));
  EXPECT_EQ(work.layer_bus.both(), 4 * (32 * (6144 + 4096 + 2 * 4096) + 2 * 4096));
  EXPECT_EQ(work.waits, 2 * 32 + 1);
}

// The GPU multiplies for the expert of all tokens, and gets a number of each token for its share.
TEST(GpuWork, SharedExpertsMultiplyThere) {
  DecoderSpec spec = FindShape("8b");
  spec.mlp.experts = 8;
  const GpuPlan plan = {.layers = 32, .host_mlps = 32, .shared_mlps = 32};
  const GpuWork without = CountGpuWork(spec, plan);
  spec.shared_mlp.intermediate = 1000;
  spec.shared_gated = true;
  const GpuWork work = CountGpuWork(spec, plan);
  EXPECT_EQ(work.layer_multiply_adds - without.layer_multiply_adds, int64_t{32} * 3 * 4096 * 1000);
  EXPECT_EQ(work.layer_bus.both() - without.layer_bus.both(), 32 * 4);
  EXPECT_EQ(work.waits, without.waits);
  const GpuWork here = CountGpuWork(spec, {.layers = 32, .host_mlps = 32});
  EXPECT_EQ(here.layer_multiply_adds, without.layer_multiply_adds);
}

// A model of sizes that matrices on either side have without gaps.
DecoderSpec Small(const std::string& type, const std::string& fields) {
  return DescribeModel(HfConfig::Parse(
      fmt::format(R"({{"model_type":"{}","vocab_size":96,"hidden_size":32,"num_hidden_layers":2,)"
                  R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,)"
                  R"("intermediate_size":48,"max_position_embeddings":256{}}})",
                  type, fields),
      "config.json"));
}

// Counts what a step of an emulated GPU copies.
class GpuBusTest : public testing::Test {
 protected:
  // The bytes of tokens behind `depth` others that come in chunks.
  static ops::GpuBusBytes Copied(const DecoderSpec& spec, DType kv_type, bool attends,
                                 int64_t depth, int64_t tokens, int64_t chunk) {
    const auto script = std::make_shared<cuda::DeviceScript>();
    auto decoder = Load(spec, FakeWeights(spec), {}, DType::kBF16);
    decoder->PlaceOn(on_gpu::NewGpu(script), /*step_rows=*/256, attends);
    const auto text = MakeTextCache(
        Geometry(spec),
        {.kv_type = kv_type, .context = 256, .prefill = attends ? std::string(kGpuPrefill) : ""});
    text->SetQuestion(256);
    if (depth > 0) on_gpu::Forward(*decoder, on_gpu::Tokens(depth), *text);
    script->in_bytes = script->out_bytes = 0;
    for (int64_t at = 0; at < tokens; at += chunk) {
      on_gpu::Forward(*decoder, on_gpu::Tokens(std::min(chunk, tokens - at)), *text);
    }
    return {script->in_bytes, script->out_bytes};
  }
};

TEST_F(GpuBusTest, ATokensBytesAreThoseThatAStepCopies) {
  DecoderSpec shared = Small("mixtral", R"(,"num_local_experts":4,"num_experts_per_tok":2)");
  shared.shared_mlp.intermediate = 40;
  shared.names.shared_gate = "model.layers.{}.mlp.shared.gate";
  shared.names.shared_up = "model.layers.{}.mlp.shared.up";
  shared.names.shared_down = "model.layers.{}.mlp.shared.down";
  for (const DecoderSpec& spec : {Small("llama", ""), shared}) {
    const bool experts = spec.mlp.experts > 0;
    const GpuWork work = CountGpuWork(
        spec, {.layers = 2, .host_mlps = experts ? 2 : 0, .shared_mlps = experts ? 2 : 0});
    const ops::GpuBusBytes copied = Copied(spec, DType::kBF16, /*attends=*/false, 0, 5, 5);
    EXPECT_EQ(copied.in, 5 * work.layer_bus.in) << experts;
    EXPECT_EQ(copied.out, 5 * work.layer_bus.out) << experts;
  }
}

TEST_F(GpuBusTest, AReadingsBytesAreThoseThatItsStepsCopy) {
  DecoderSpec chunks = Small("mistral", R"(,"sliding_window":70)");
  const DecoderSpec window = chunks;
  chunks.chunked = true;
  for (const DecoderSpec& spec : {Small("llama", ""), window, chunks}) {
    for (const DType kv_type : {DType::kBF16, DType::kF32}) {
      for (const int64_t chunk : {30, 120}) {
        const GpuWork work = CountGpuWork(spec, {.layers = 2});
        const GpuAttentionWork reading = CountGpuReading(spec, kv_type, 100, 90, chunk);
        const ops::GpuBusBytes copied = Copied(spec, kv_type, /*attends=*/true, 100, 90, chunk);
        EXPECT_EQ(copied.in, 90 * work.layer_bus.in + reading.bus.in) << chunk;
        EXPECT_EQ(copied.out, 90 * work.layer_bus.out + reading.bus.out) << chunk;
      }
    }
  }
}

// The window's other tiles came in the steps before. The token's own is copied anew.
TEST_F(GpuBusTest, AnAnswersBytesAreThoseThatItsStepCopies) {
  const DecoderSpec window = Small("mistral", R"(,"sliding_window":70)");
  for (const DecoderSpec& spec : {Small("llama", ""), window}) {
    for (const DType kv_type : {DType::kBF16, DType::kF32}) {
      const auto script = std::make_shared<cuda::DeviceScript>();
      auto decoder = Load(spec, FakeWeights(spec), {}, DType::kBF16);
      decoder->PlaceOn(on_gpu::NewGpu(script), /*step_rows=*/256, /*attends=*/false,
                       {.tokens = 128, .texts = 2});
      const auto text =
          MakeTextCache(Geometry(spec), {.kv_type = kv_type, .context = 256, .gpu_window = 128});
      on_gpu::Forward(*decoder, on_gpu::Tokens(150), *text);
      on_gpu::Forward(*decoder, on_gpu::Tokens(1), *text);
      script->in_bytes = script->out_bytes = 0;
      on_gpu::Forward(*decoder, on_gpu::Tokens(1), *text);
      const GpuWork work = CountGpuWork(spec, {.layers = 2});
      const GpuAttentionWork near =
          CountGpuNear(spec, kv_type, text->policy().near_on_gpu().tiles, 151);
      EXPECT_EQ(script->in_bytes, work.layer_bus.in + near.bus.in);
      EXPECT_EQ(script->out_bytes, work.layer_bus.out + near.bus.out);
    }
  }
}

// Two layers with keys of 2 KiB for two tiles. A token at 151 sees 88 keys in the second and third
// tile, or the last 70 of them.
TEST(GpuNear, CountsTheKeysThatATokenMeets) {
  const ops::NearTiles near{.sinks = 0, .window = 2};
  const GpuAttentionWork all = CountGpuNear(Small("llama", ""), DType::kBF16, near, 151);
  EXPECT_EQ(all.multiply_adds, 2 * (151 - 64 + 1) * 4 * 32);
  EXPECT_EQ(all.memory_bytes, 2 * 2 * 64 * 2 * 32 * 2);
  const DecoderSpec window = Small("mistral", R"(,"sliding_window":70)");
  EXPECT_EQ(CountGpuNear(window, DType::kBF16, near, 151).multiply_adds, 2 * 70 * 4 * 32);
  const ops::NearTiles ends{.sinks = 1, .window = 1};
  EXPECT_EQ(CountGpuNear(Small("llama", ""), DType::kBF16, ends, 151).multiply_adds,
            2 * (64 + 151 - 128 + 1) * 4 * 32);
}

// Two layers, whose tokens 0 to 9 see 55 keys together, in products of four heads.
TEST(GpuReading, CountsTheKeysThatTokensMeet) {
  const DecoderSpec spec = Small("llama", "");
  EXPECT_EQ(CountGpuReading(spec, DType::kBF16, 0, 10, 10).multiply_adds, 2 * 55 * 4 * 32);
  EXPECT_EQ(CountGpuReading(spec, DType::kBF16, 0, 10, 3).multiply_adds, 2 * 55 * 4 * 32);
}

constexpr GpuLimits kLimits = {
    .read_bytes_per_second = 1000, .bf16_per_second = 400, .int8_per_second = 800};
constexpr GpuWork kWork = {
    .weight_bytes = 500, .layer_multiply_adds = 40, .head_multiply_adds = 10};

TestResult Held(const TestCase& test, DType weights, std::vector<double> rates) {
  TestResult result{.test = test, .tokens_per_second = std::move(rates)};
  HoldAgainst(kLimits, kWork, weights, /*attention=*/{}, result);
  return result;
}

// A prompt of five tokens has 42 multiply-adds for each: the head meets one of them.
TEST(GpuWork, APromptIsHeldAgainstThePeakOfItsWeights) {
  const TestResult bf16 = Held({.prompt_tokens = 5}, DType::kBF16, {2, 4});
  EXPECT_EQ(bf16.limit_name, "gpu_bf16_peak");
  EXPECT_EQ(bf16.limits, (std::vector<double>{400, 400}));
  EXPECT_EQ(bf16.fractions, (std::vector<double>{2 * 42.0 / 400, 4 * 42.0 / 400}));
  for (const DType ints : {DType::kI8, DType::kGrouped}) {
    const TestResult held = Held({.prompt_tokens = 5}, ints, {2});
    EXPECT_EQ(held.limit_name, "gpu_int8_peak");
    EXPECT_EQ(held.fractions, std::vector<double>{2 * 42.0 / 800});
  }
}

// A step reads 500 bytes in 0.5 s. Its products take 0.125 s for a text, and more from five on.
TEST(GpuWork, ContinuedTextsAreHeldAgainstWhatTakesLonger) {
  const TestResult one = Held({.predict_tokens = 8}, DType::kBF16, {1});
  EXPECT_EQ(one.limit_name, "gpu_read_bandwidth");
  EXPECT_EQ(one.fractions, std::vector<double>{0.5});
  const TestResult four = Held({.predict_tokens = 8, .texts = 4}, DType::kBF16, {4});
  EXPECT_EQ(four.limit_name, "gpu_read_bandwidth");
  EXPECT_EQ(four.fractions, std::vector<double>{0.5}) << "all texts share a reading";
  const TestResult five = Held({.predict_tokens = 8, .texts = 5}, DType::kBF16, {4});
  EXPECT_EQ(five.limit_name, "gpu_bf16_peak");
  EXPECT_EQ(five.fractions, std::vector<double>{4 * 50.0 / 400});
}

// Eight tokens bring 800 bytes together, 100 each in 2 s. Their products take 0.1 s.
TEST(GpuWork, AReadPromptIsHeldAgainstTheBusThatTakesLonger) {
  GpuLimits limits = kLimits;
  limits.in_bytes_per_second = 50;
  limits.out_bytes_per_second = 100;
  TestResult result{.test = {.prompt_tokens = 8}, .tokens_per_second = {0.25}};
  HoldAgainst(limits, kWork, DType::kBF16, {.bus = {.in = 800, .out = 160}}, result);
  EXPECT_EQ(result.limit_name, "gpu_bus_in");
  EXPECT_EQ(result.limit_kind, LimitKind::kReadBandwidth);
  EXPECT_EQ(result.work_per_token, 100);
  EXPECT_EQ(result.fractions, std::vector<double>{0.5});
  HoldAgainst(limits, kWork, DType::kBF16, {.bus = {.in = 80, .out = 1600}}, result);
  EXPECT_EQ(result.limit_name, "gpu_bus_out");
  EXPECT_EQ(result.work_per_token, 200);
  HoldAgainst(limits, kWork, DType::kBF16, {.bus = {.in = 80}, .multiply_adds = 8000}, result);
  EXPECT_EQ(result.limit_name, "gpu_bf16_peak");
  EXPECT_EQ(result.work_per_token, 40 + (10 + 8000) / 8.0);
}

// Weights of 500 bytes are read for all texts, and 300 of near keys for each of two.
TEST(GpuWork, NearKeysAreReadForEachText) {
  TestResult result{.test = {.predict_tokens = 8, .texts = 2}, .tokens_per_second = {1}};
  HoldAgainst(kLimits, kWork, DType::kBF16, {.memory_bytes = 300}, result);
  EXPECT_EQ(result.limit_name, "gpu_read_bandwidth");
  EXPECT_EQ(result.work_per_token, 250 + 300);
  EXPECT_EQ(result.fractions, std::vector<double>{0.55});
}

}  // namespace
}  // namespace godwit::bench::gpu_work_test
