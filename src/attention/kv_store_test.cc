#include "attention/kv_store.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "base/test_support.h"
#include "kernels/dispatch.h"
#include "kernels/kernel_table.h"

namespace godwit {
namespace {

using kernels::kTileTokens;

constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

AttentionGeometry Geometry(int64_t layers, int64_t kv_heads, int64_t head_dim) {
  AttentionGeometry geometry;
  geometry.layers = layers;
  geometry.shape = {.heads = 2 * kv_heads, .kv_heads = kv_heads, .head_dim = head_dim, .scale = 1};
  return geometry;
}

// Tells every element apart; exact in f16, rounded in bf16.
float KeyOf(int64_t layer, int64_t position, int64_t head, int64_t d) {
  return static_cast<float>(((layer * 7 + position) * 5 + head) * 11 + d) / 16.0f;
}
float ValueOf(int64_t layer, int64_t position, int64_t head, int64_t d) {
  return -KeyOf(layer, position, head, d) - 0.5f;
}

float Rounded(DType dtype, float x) {
  if (dtype == DType::kF16) return ToFloat(ToF16(x));
  if (dtype == DType::kBF16) return ToFloat(ToBF16(x));
  return x;
}

float Load(DType dtype, const std::byte* data, int64_t index) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(data)[index];
  if (dtype == DType::kF16) return ToFloat(reinterpret_cast<const F16*>(data)[index]);
  return ToFloat(reinterpret_cast<const BF16*>(data)[index]);
}

class KvStoreTest : public testing::Test {
 protected:
  void Write(KvStore& store, const AttentionGeometry& geometry, int64_t layer, int64_t first,
             int64_t tokens) {
    const int64_t heads = geometry.shape.kv_heads, dim = geometry.shape.head_dim;
    std::vector<float> k, v;
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t p = first; p < first + tokens; ++p) {
        for (int64_t d = 0; d < dim; ++d) k.push_back(KeyOf(layer, p, head, d));
      }
    }
    for (int64_t p = first; p < first + tokens; ++p) {
      for (int64_t head = 0; head < heads; ++head) {
        for (int64_t d = 0; d < dim; ++d) v.push_back(ValueOf(layer, p, head, d));
      }
    }
    const Exec exec{
        .pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
    store.Write(exec, layer, first, {k.data(), heads * tokens, dim, dim},
                {v.data(), tokens, heads * dim, heads * dim});
  }

  // That positions [begin, end) are what was written there: keys as columns of their tile, values
  // as rows.
  static void ExpectHeld(const KvStore& store, const AttentionGeometry& geometry, DType dtype,
                         int64_t layer, int64_t begin, int64_t end) {
    const ops::KvView view = store.View(layer);
    ASSERT_EQ(view.dtype, dtype);
    const int64_t dim = geometry.shape.head_dim;
    for (int64_t p = begin; p < end; ++p) {
      const int64_t slot = p % kTileTokens;
      for (int64_t head = 0; head < geometry.shape.kv_heads; ++head) {
        const std::byte* keys = view.Keys(head, p / kTileTokens);
        const std::byte* values = view.Values(head, p / kTileTokens);
        for (int64_t d = 0; d < dim; ++d) {
          ASSERT_EQ(Load(dtype, keys, d * kTileTokens + slot),
                    Rounded(dtype, KeyOf(layer, p, head, d)))
              << "key of position " << p;
          ASSERT_EQ(Load(dtype, values, slot * kernels::PadToLanes(dim) + d),
                    Rounded(dtype, ValueOf(layer, p, head, d)))
              << "value of position " << p;
        }
      }
    }
  }

  ThreadPool pool_{3};
  Workspace workspace_;
};

// Each row with its own scale, the integers within half a step of what was written.
TEST_F(KvStoreTest, HoldsInt8WithScales) {
  for (const int64_t dim : {1, 16, 33}) {
    const AttentionGeometry geometry = Geometry(2, 3, dim);
    KvStore store(geometry, DType::kI8);
    store.Reserve(2);
    Write(store, geometry, 1, 0, 70);
    const ops::KvView view = store.View(1);
    for (int64_t p = 0; p < 70; ++p) {
      for (int64_t head = 0; head < 3; ++head) {
        const int64_t tile = p / kTileTokens, slot = p % kTileTokens;
        const float k_scale = view.Scales(head, tile)[slot];
        const float v_scale = view.Scales(head, tile)[kTileTokens + slot];
        ASSERT_EQ(k_scale, KeyOf(1, p, head, dim - 1) / 127) << "the largest is the last";
        const auto* keys = reinterpret_cast<const int8_t*>(view.Keys(head, tile));
        const auto* values = reinterpret_cast<const int8_t*>(view.Values(head, tile)) +
                             slot * kernels::PadToLanes(dim);
        for (int64_t d = 0; d < dim; ++d) {
          ASSERT_NEAR(k_scale * keys[d * kTileTokens + slot], KeyOf(1, p, head, d),
                      k_scale * 0.501);
          ASSERT_NEAR(v_scale * values[d], ValueOf(1, p, head, d), v_scale * 0.501);
        }
      }
    }
    EXPECT_EQ(KvBytesPerToken(geometry, DType::kI8),
              2 * 3 * (dim + kernels::PadToLanes(dim) + 2 * int64_t{sizeof(float)}));
  }
}

TEST_F(KvStoreTest, HoldsWhatWasWritten) {
  for (const DType dtype : kTypes) {
    for (const int64_t dim : {1, 8, 16, 20, 33}) {
      const AttentionGeometry geometry = Geometry(2, 3, dim);
      KvStore store(geometry, dtype);
      store.Reserve(3);
      for (int64_t layer = 0; layer < 2; ++layer) {
        int64_t at = 0;
        for (const int64_t tokens : {1, 7, 60, 1, 100, 20}) {  // one by one and in parallel
          Write(store, geometry, layer, at, tokens);
          at += tokens;
        }
      }
      for (int64_t layer = 0; layer < 2; ++layer) {
        ExpectHeld(store, geometry, dtype, layer, 0, 189);
        // What was not written is zero, the padding of values included.
        const ops::KvView view = store.View(layer);
        EXPECT_EQ(Load(dtype, view.Keys(2, 2), 189 % kTileTokens), 0);
        for (int64_t d = dim; d < kernels::PadToLanes(dim); ++d) {
          EXPECT_EQ(Load(dtype, view.Values(0, 0), d), 0);
        }
      }
    }
  }
}

// Rounding takes the largest number of f16, 65504, up to half a step further.
TEST_F(KvStoreTest, WhatF16CannotHoldIsRefused) {
  const Exec exec{.pool = pool_, .kernels = *kernels::SelectIsa("").table, .workspace = workspace_};
  const auto write = [&](DType dtype, float key, float value) {
    KvStore store(Geometry(4, 1, 2), dtype);
    store.Reserve(1);
    const float k[] = {1, key}, v[] = {value, 1};
    store.Write(exec, 3, 0, {k, 1, 2, 2}, {v, 1, 2, 2});
    return Load(dtype, store.View(3).Keys(0, 0), kTileTokens);
  };
  EXPECT_EQ(write(DType::kF16, -65519, 65504), -65504);
  EXPECT_EQ(write(DType::kBF16, 1e30f, 1e30f), ToFloat(ToBF16(1e30f)));
  const auto message = [&](float key, float value) {
    return ErrorOf(ErrorKind::kUnsupported, [&] { write(DType::kF16, key, value); });
  };
  EXPECT_NE(message(-65520, 0).find("a key of layer 3 has an element of magnitude 65520"),
            std::string::npos);
  EXPECT_NE(message(0, 1e30f).find("a value of layer 3"), std::string::npos);
}

TEST_F(KvStoreTest, IsARingOfItsPages) {
  for (const DType dtype : kTypes) {
    const AttentionGeometry geometry = Geometry(1, 2, 12);
    KvStore store(geometry, dtype);
    store.Reserve(3);
    for (int64_t at = 0; at < 1000; at += 25) Write(store, geometry, 0, at, 25);
    ExpectHeld(store, geometry, dtype, 0, 1000 - 3 * kTileTokens, 1000);
    EXPECT_EQ(store.pages(), 3);
  }
}

TEST_F(KvStoreTest, GrowingKeepsTheContents) {
  const AttentionGeometry geometry = Geometry(2, 2, 20);
  KvStore store(geometry, DType::kF16);
  store.Reserve(1);
  Write(store, geometry, 1, 0, 64);
  const std::byte* page = store.View(1).Keys(0, 0);
  store.Reserve(100);
  EXPECT_EQ(store.View(1).Keys(0, 0), page);
  Write(store, geometry, 1, 64, 1000);
  ExpectHeld(store, geometry, DType::kF16, 1, 0, 1064);
  store.Reserve(5);
  EXPECT_EQ(store.pages(), 100);
  store.Shrink(17);
  EXPECT_EQ(store.pages(), 17);
  EXPECT_EQ(store.View(0).pages.size(), 17u);
  ExpectHeld(store, geometry, DType::kF16, 1, 0, 1064);
  store.Shrink(18);
  EXPECT_EQ(store.pages(), 17);
}

TEST_F(KvStoreTest, CountsItsBytes) {
  for (const DType dtype : kTypes) {
    // Keys as they are, values padded to 16 floats.
    const auto element = static_cast<int64_t>(SizeOf(dtype));
    EXPECT_EQ(KvBytesPerToken(Geometry(3, 2, 20), dtype), 3 * 2 * (20 + 32) * element);
    EXPECT_EQ(KvBytesPerToken(Geometry(32, 8, 128), dtype), 32 * 8 * 256 * element);
  }
  KvStore store(Geometry(3, 2, 20), DType::kF32);
  EXPECT_EQ(store.bytes(), 0);
  store.Reserve(4);
  EXPECT_EQ(store.bytes(), 4 * kTileTokens * 3 * 2 * 52 * 4);
  EXPECT_EQ(store.page_bytes(), store.bytes() / 4);
}

TEST_F(KvStoreTest, LimitsTheHeadDimension) {
  const AttentionGeometry widest = Geometry(1, 1, 1024);
  KvStore store(widest, DType::kBF16);
  store.Reserve(1);
  Write(store, widest, 0, 0, 9);
  ExpectHeld(store, widest, DType::kBF16, 0, 0, 9);
  try {
    KvStore(Geometry(1, 1, 1025), DType::kBF16);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("1025"), std::string::npos);
  }
}

TEST_F(KvStoreTest, ARefusedReserveChangesNothing) {
  const AttentionGeometry geometry = Geometry(4, 4, 64);
  KvStore store(geometry, DType::kF32);
  store.Reserve(2);
  Write(store, geometry, 3, 0, 100);
  // More than an address space, and more than a number.
  for (const int64_t pages : {int64_t{1} << 31, int64_t{1} << 50}) {
    try {
      store.Reserve(pages);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMemory);
    }
    EXPECT_EQ(store.pages(), 2);
    EXPECT_EQ(store.View(3).pages.size(), 2u);
    ExpectHeld(store, geometry, DType::kF32, 3, 0, 100);
  }
}

}  // namespace
}  // namespace godwit
