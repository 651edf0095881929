#include "engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace godwit {
namespace {

// Llama-3.1-8B: 32 layers, 8 KV heads of 128.
AttentionGeometry Llama8B() {
  AttentionGeometry geometry;
  geometry.layers = 32;
  geometry.shape = {.heads = 32, .kv_heads = 8, .head_dim = 128, .scale = 1};
  geometry.windows.assign(32, 0);
  return geometry;
}

TEST(MemoryPlan, CountsKvBytes) {
  // 2 bytes * (keys + values) * 32 layers * 8 heads * 128 = 128 KiB a token.
  EXPECT_EQ(LargestContext(Llama8B(), DType::kBF16, int64_t{16} << 30), 131072);
  EXPECT_EQ(LargestContext(Llama8B(), DType::kF32, int64_t{16} << 30), 65536);
  EXPECT_EQ(LargestContext(Llama8B(), DType::kF32, -1), 0);
}

TEST(MemoryPlan, RefusesWhatDoesNotFitWithTheNumbers) {
  CheckKvFits(Llama8B(), DType::kBF16, 1);
  try {
    CheckKvFits(Llama8B(), DType::kBF16, int64_t{1} << 40);
    FAIL() << "a petabyte fits?";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    EXPECT_THAT(error.what(),
                testing::HasSubstr("the KV cache of 1099511627776 more tokens in BF16, of which "));
    EXPECT_THAT(error.what(), testing::HasSubstr(" would fit, takes 128.0 PiB, and "));
  }
}

}  // namespace
}  // namespace godwit
