#include "engine/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attention/core/kv_cost.h"
#include "attention/make_policy.h"
#include "base/test_support.h"

namespace godwit::memory_plan_test {
namespace {

// Llama-3.1-8B: 32 layers, 8 KV heads of 128.
KvLayout Llama8B(DType dtype) {
  return {.layers = 32, .kv_heads = 8, .head_dim = 128, .dtype = dtype};
}

TEST(MemoryPlan, CountsKvBytesPageByPage) {
  // 2 bytes * (keys + values) * 32 layers * 8 heads * 128 = 128 KiB a token.
  EXPECT_EQ(LargestContext(Llama8B(DType::kBF16), nullptr, int64_t{16} << 30), 131072);
  EXPECT_EQ(LargestContext(Llama8B(DType::kBF16), nullptr, (int64_t{16} << 30) - 1), 131072 - 64);
  EXPECT_EQ(LargestContext(Llama8B(DType::kF32), nullptr, int64_t{16} << 30), 65536);
  EXPECT_EQ(LargestContext(Llama8B(DType::kF32), nullptr, -1), 0);
}

TEST(MemoryPlan, CountsStatesOfRecurrentLayers) {
  KvLayout layout{.layers = 2, .kv_heads = 1, .head_dim = 8};
  const int64_t keys = KvBytes(layout, nullptr, 100), page = layout.page_bytes();
  layout.states = {.layers = 3, .floats = 16, .row_floats = 16};
  const int64_t state = layout.states.state_bytes(), rows = layout.states.rows_bytes();
  EXPECT_EQ(KvBytes(layout, nullptr, 0), 0);
  EXPECT_EQ(KvBytes(layout, nullptr, 100), keys + 3 * state + 3 * rows);
  EXPECT_EQ(KvBytes(layout, nullptr, 1 << 20), (1 << 20) / 64 * 2 * page + 7 * state + 3 * rows);
  EXPECT_EQ(LargestContext(layout, nullptr, KvBytes(layout, nullptr, 6400)), 6400);
}

TEST(MemoryPlan, RefusesWhatDoesNotFitWithTheNumbers) {
  CheckKvFits(Llama8B(DType::kBF16), nullptr, 1024, int64_t{128} << 20);
  EXPECT_STREQ(
      ErrorOf(ErrorKind::kMemory,
              [] { CheckKvFits(Llama8B(DType::kBF16), nullptr, 1025, int64_t{128} << 20); })
          .c_str(),
      "the KV cache of 1025 tokens in BF16 takes 136.0 MiB, and 128.0 MiB are available for "
      "KV caches, enough for 1024 tokens");
  ErrorOf(ErrorKind::kMemory,
          [] { CheckKvFits(Llama8B(DType::kF32), nullptr, INT64_MAX, INT64_MAX - 1); });
}

TEST(MemoryPlan, IndexOfACacheInAFileMustFitInMemory) {
  AttentionGeometry geometry;
  geometry.layers = 32;
  geometry.shape = {.heads = 32, .kv_heads = 8, .head_dim = 128, .scale = 1};
  geometry.windows.assign(32, 0);
  const auto blocks = MakePolicy(geometry, {.spec = "blocks", .context = 1 << 20});
  const int64_t bytes = IndexAt(*blocks, Llama8B(DType::kBF16), (1 << 20) - 1).held_bytes;
  CheckIndexFits(Llama8B(DType::kBF16), *blocks, 1 << 20, bytes);
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory,
                      [&] { CheckIndexFits(Llama8B(DType::kBF16), *blocks, 1 << 20, bytes - 1); }),
              testing::HasSubstr("the index of blocks for 1048576 tokens takes"));
}

}  // namespace
}  // namespace godwit::memory_plan_test
