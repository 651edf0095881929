// Caches for tests, in which every number tells where it was written. Only *_test.cc files include
// it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/dispatch.h"
#include "kernels/kernel_table.h"
#include "kv/kv_cache.h"
#include "ops/store_row.h"

namespace godwit {

inline KvLayout Layout(int64_t layers, int64_t kv_heads, int64_t head_dim, DType dtype) {
  return {.layers = layers, .kv_heads = kv_heads, .head_dim = head_dim, .dtype = dtype};
}

// The layout with values that lie in keys.
inline KvLayout KeysAlone(KvLayout layout) {
  layout.values_in_keys = true;
  return layout;
}

// Tells every element apart; exact in f16, rounded in bf16. `text` tells apart what different texts
// have at one position.
inline float KeyOf(int64_t text, int64_t layer, int64_t position, int64_t head, int64_t d) {
  return static_cast<float>(((layer * 7 + position) * 5 + head) * 11 + d + 3000 * text) / 16.0f;
}
inline float ValueOf(int64_t text, int64_t layer, int64_t position, int64_t head, int64_t d) {
  return -KeyOf(text, layer, position, head, d) - 0.5f;
}

inline float Rounded(DType dtype, float x) {
  if (dtype == DType::kF16) return ToFloat(ToF16(x));
  if (dtype == DType::kBF16) return ToFloat(ToBF16(x));
  return x;
}

inline float Load(DType dtype, const std::byte* data, int64_t index) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(data)[index];
  if (dtype == DType::kF16) return ToFloat(reinterpret_cast<const F16*>(data)[index]);
  return ToFloat(reinterpret_cast<const BF16*>(data)[index]);
}

inline const kernels::KernelTable& Kernels() {
  static const kernels::KernelTable& table = *kernels::SelectIsa("").table;
  return table;
}

inline void WriteRow(const KvCache& cache, int64_t text, int64_t position) {
  const KvLayout& kv = cache.layout();
  std::vector<float> k(kv.head_dim), v(k.size());
  for (int64_t layer = 0; layer < kv.layers; ++layer) {
    for (int64_t head = 0; head < kv.kv_heads; ++head) {
      for (int64_t d = 0; d < kv.head_dim; ++d) {
        k[d] = KeyOf(text, layer, position, head, d);
        v[d] = ValueOf(text, layer, position, head, d);
      }
      ops::StoreRow(Kernels(), kv, cache.View(layer), layer, head, position, k.data(),
                    kv.values_in_keys ? nullptr : v.data());
    }
  }
}

inline void Read(KvCache& cache, int64_t text, int64_t tokens) {
  cache.Reserve(tokens);
  for (int64_t i = 0; i < tokens; ++i) WriteRow(cache, text, cache.length() + i);
  cache.Append(tokens);
}

// Expects the position to hold what the text wrote there.
inline void ExpectRow(const KvCache& cache, int64_t text, int64_t position) {
  const KvLayout& kv = cache.layout();
  const int64_t tile = position / kernels::kTileTokens, slot = position % kernels::kTileTokens;
  const int64_t depth = kernels::KvDepth(kv.dtype);
  for (int64_t layer = 0; layer < kv.layers; ++layer) {
    const ops::KvView view = cache.View(layer);
    ASSERT_EQ(view.dtype, kv.dtype);
    ASSERT_TRUE(view.Holds(tile)) << "position " << position;
    bool keys = true, values = true;
    for (int64_t head = 0; head < kv.kv_heads; ++head) {
      const std::byte* k = view.Keys(head, tile);
      const std::byte* v = view.Values(head, tile);
      for (int64_t d = 0; d < kv.head_dim; ++d) {
        keys &= Load(kv.dtype, k, kernels::KeyAt(depth, d, slot)) ==
                Rounded(kv.dtype, KeyOf(text, layer, position, head, d));
        if (kv.values_in_keys) continue;
        values &= Load(kv.dtype, v, kernels::ValueAt(depth, kv.head_dim, slot, d)) ==
                  Rounded(kv.dtype, ValueOf(text, layer, position, head, d));
      }
    }
    ASSERT_TRUE(keys) << "key of position " << position;
    ASSERT_TRUE(values) << "value of position " << position;
  }
}

inline void ExpectHeld(const KvCache& cache, int64_t text, int64_t begin, int64_t end) {
  for (int64_t p = begin; p < end && !testing::Test::HasFatalFailure(); ++p) {
    ExpectRow(cache, text, p);
  }
}

inline KvCache NewCache(const KvLayout& layout, int64_t budget_bytes = INT64_MAX) {
  return KvCache(std::make_shared<KvPool>(layout, std::make_shared<KvBudget>(budget_bytes)));
}

}  // namespace godwit
