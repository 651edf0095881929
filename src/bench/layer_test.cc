#include "bench/layer.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "base/test_support.h"
#include "model/archs/all.h"
#include "model/shape_test_support.h"
#include "model/shapes.h"
#include "weights/hf_config.h"

namespace godwit::bench::layer_test {
namespace {

// 1 G multiply-adds, 1 GB of memory and 4 GB of cache a second.
class RoundMachine : public Probe {
 public:
  ReadRate ReadBandwidth(ThreadPool&) override { return {1e9, 1 << 20}; }
  double CacheReadBandwidth() override { return 4e9; }
  int64_t CacheBytes() override { return 0; }
  MultiplyPeak PeakOf(ThreadPool& pool, DType) override {
    EXPECT_EQ(pool.threads(), 1);
    return {"f32_peak", 1e9};
  }
  double ForkJoinMicroseconds(ThreadPool&) override { return 0; }
};

LayerCount Count(DType weights, int64_t rows, int64_t depth, int64_t runs = 2) {
  RoundMachine machine;
  return CountLayer(SmallShape(), {.rows = rows,
                                   .depth = depth,
                                   .weights = weights,
                                   .isa = &kernels::SelectIsa(""),
                                   .probe = &machine,
                                   .runs = runs,
                                   .clock = [now = int64_t{0}]() mutable { return ++now; }});
}

std::map<std::string, LayerPart> ByName(const LayerCount& count) {
  std::map<std::string, LayerPart> parts;
  for (const LayerPart& part : count.parts) parts[part.name] = part;
  return parts;
}

// The small shape has a hidden size of 64, 4 heads of 16, 2 KV heads and 160 MLP rows. 20 rows
// behind 30 tokens see 31 + ... + 50 = 810 keys, in each of two KV heads of two heads.
TEST(Layer, CountsMultiplyAddsAndBytes) {
  const LayerCount count = Count(DType::kBF16, 20, 30);
  auto parts = ByName(count);
  EXPECT_EQ(parts["qkv"].multiply_adds, 20 * 64 * 128);
  EXPECT_EQ(parts["attention out"].multiply_adds, 20 * 64 * 64);
  EXPECT_EQ(parts["gate and up"].multiply_adds, 20 * 64 * 320);
  EXPECT_EQ(parts["down"].multiply_adds, 20 * 160 * 64);
  EXPECT_EQ(parts["attention"].multiply_adds, 810 * 4 * 2 * 16);
  EXPECT_EQ(parts["gate and up"].memory_bytes, 64 * 320 * 2);
  EXPECT_EQ(parts["attention"].memory_bytes, 50 * 2 * 2 * 16 * 2) << "keys and values of 50 tokens";
  EXPECT_EQ(parts["rope and KV"].memory_bytes, 20 * 2 * 2 * 16 * 2);
  // 5 panels of 64 outputs read 20 rows of bf16, and write 320 floats in each row.
  EXPECT_EQ(parts["gate and up"].cache_bytes, 5 * 20 * 64 * 2 + 20 * 320 * 4);
  EXPECT_EQ(parts["activation"].cache_bytes, 20 * (320 + 160) * 4);
  EXPECT_EQ(parts["norm, twice"].cache_bytes, 2 * 2 * 20 * 64 * 4);
  // The inputs of the four products have 64, 64, 64 and 160 numbers: read as f32, written as bf16.
  EXPECT_EQ(parts["quantizing"].cache_bytes, 20 * 352 * (4 + 2));
  EXPECT_EQ(ByName(Count(DType::kI8, 20, 30))["quantizing"].cache_bytes, 20 * 352 * (4 + 1));
}

TEST(Layer, LimitsFollowFromTheMachine) {
  const LayerCount count = Count(DType::kBF16, 20, 0);
  double multiply = 0, memory = 0, cache = 0, limits = 0, alone = 0;
  for (const LayerPart& part : count.parts) {
    EXPECT_DOUBLE_EQ(part.multiply_seconds, part.multiply_adds / 1e9) << part.name;
    EXPECT_DOUBLE_EQ(part.memory_seconds, part.memory_bytes / 1e9) << part.name;
    EXPECT_DOUBLE_EQ(part.cache_seconds, part.cache_bytes / 4e9) << part.name;
    if (part.inside) continue;
    multiply += part.multiply_seconds;
    memory += part.memory_seconds;
    cache += part.cache_seconds;
    alone += part.seconds;
    limits += std::max({part.multiply_seconds, part.memory_seconds, part.cache_seconds});
  }
  EXPECT_DOUBLE_EQ(count.overlapped_seconds(), std::max({multiply, memory, cache}));
  EXPECT_DOUBLE_EQ(count.limit_seconds(), limits);
  EXPECT_DOUBLE_EQ(count.alone_seconds(), alone);
  EXPECT_LE(count.overlapped_seconds(), count.limit_seconds());
}

// By a clock that ticks at every look, every part takes time, and all of them in order take more.
TEST(Layer, EveryPartIsMeasured) {
  for (const DType weights : {DType::kF32, DType::kBF16, DType::kI8, DType::kGrouped}) {
    const LayerCount count = Count(weights, 20, 70, /*runs=*/20);  // and rows stay finite
    for (const LayerPart& part : count.parts) EXPECT_GT(part.seconds, 0) << part.name;
    for (const LayerPart& part : count.parts) EXPECT_GT(count.in_order_seconds, part.seconds);
  }
}

TEST(Layer, ExpertsAreRefusedWithAWayOut) {
  const std::string message = ErrorOf(ErrorKind::kUnsupported, [] {
    RoundMachine machine;
    (void)CountLayer(FindShape("moe"), {.isa = &kernels::SelectIsa(""), .probe = &machine});
  });
  EXPECT_NE(message.find("a profile of its steps"), std::string::npos);
}

}  // namespace
}  // namespace godwit::bench::layer_test
