#include "bench/gpu_work.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace godwit::bench::gpu_work_test
