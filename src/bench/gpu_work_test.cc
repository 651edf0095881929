#include "bench/gpu_work.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "bench/work.h"
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
    EXPECT_EQ(all.head_bus_bytes, 4 * (spec.hidden_size + spec.vocab_size));
    plan.head = false;
    plan.layers = spec.layers / 2;
    const GpuWork half = CountGpuWork(spec, plan);
    EXPECT_EQ(2 * half.layer_multiply_adds, all.layer_multiply_adds);
    EXPECT_EQ(half.head_multiply_adds, 0);
    EXPECT_EQ(half.head_bus_bytes, 0);
    EXPECT_EQ(half.waits, spec.layers / 2 + 1);
    const int64_t stream = 2 * 4 * spec.hidden_size;
    EXPECT_EQ(2 * (half.layer_bus_bytes - stream), all.layer_bus_bytes - stream);
  }
}

// Llama 3.1 8B: q, k and v of 6144 numbers come, 4096 of attention go, in each of 32 layers.
TEST(GpuWork, BytesOfTheBusAreThoseOfQueriesKeysValuesAndResults) {
  const DecoderSpec spec = FindShape("8b");
  const GpuWork work = CountGpuWork(spec, {.layers = 32});
  EXPECT_EQ(work.layer_bus_bytes, 4 * (32 * (6144 + 4096) + 2 * 4096));
}

// The residual stream comes before the experts of the host, and their results go.
TEST(GpuWork, ExpertsOfTheHostCostTheirRows) {
  DecoderSpec spec = FindShape("8b");
  spec.mlp.experts = 8;
  const GpuWork work = CountGpuWork(spec, {.layers = 32});
  EXPECT_EQ(work.layer_multiply_adds, int64_t{32} * 4096 * (6144 + 4096));
  EXPECT_EQ(work.layer_bus_bytes, 4 * (32 * (6144 + 4096 + 2 * 4096) + 2 * 4096));
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
  EXPECT_EQ(work.layer_bus_bytes - without.layer_bus_bytes, 32 * 4);
  EXPECT_EQ(work.waits, without.waits);
  const GpuWork here = CountGpuWork(spec, {.layers = 32, .host_mlps = 32});
  EXPECT_EQ(here.layer_multiply_adds, without.layer_multiply_adds);
}

constexpr GpuLimits kLimits = {
    .read_bytes_per_second = 1000, .bf16_per_second = 400, .int8_per_second = 800};
constexpr GpuWork kWork = {
    .weight_bytes = 500, .layer_multiply_adds = 40, .head_multiply_adds = 10};

TestResult Held(const TestCase& test, DType weights, std::vector<double> rates) {
  TestResult result{.test = test, .tokens_per_second = std::move(rates)};
  HoldAgainst(kLimits, kWork, weights, result);
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

}  // namespace
}  // namespace godwit::bench::gpu_work_test
