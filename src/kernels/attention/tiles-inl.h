// Shared parts of attention by tile registers, of int8 quads and bf16 pairs: a KV tile's keys lie
// as a panel of weights does. Include after vec/avx512.h.
#pragma once

#include "kernels/attention/rows-inl.h"
#include "kernels/tiles_amx-inl.h"

namespace godwit::kernels {
namespace {

static_assert(kTileTokens == kPanelColumns);

// Fetches the next tile, or a part of it, while this one is computed, evenly in as many calls. A
// core has few lines on their way at once: it would wait for them, and then ask for none.
class FetchEvenly {
 public:
  GODWIT_INLINE FetchEvenly(Places places, int64_t bytes, int64_t calls)
      : places_(places), rounds_(bytes / Places::kRound), calls_(calls) {}

  GODWIT_INLINE void operator()() {
    for (due_ += rounds_; due_ >= calls_; due_ -= calls_) {
      places_.Fetch<Places::kRound, /*kLevel=*/1>();
    }
  }

 private:
  Places places_;
  int64_t rounds_, calls_;
  int64_t due_ = 0;  // of a round, in 1 / calls_
};

// How often the products with keys, of `depth` bytes each, call fetch().
GODWIT_INLINE int64_t KeyProducts(const TiledRows& rows, int64_t depth) {
  return 4 * rows.tiles * ((depth + kSectionDepth - 1) / kSectionDepth);
}

// Products of rows of queries with the keys of a tile to scores [rows, kTileTokens]; also of rows
// that see nothing, which nobody reads. q_stride and depth, the length of a row, are in bytes.
template <class Product, class Fetch>
void MultiplyKeysByTiles(const TiledRows& rows, const void* queries, int64_t q_stride,
                         int64_t depth, const void* keys, Fetch& fetch, float* scores) {
  const auto* k = static_cast<const uint8_t*>(keys);
  const int64_t sections = depth / kSectionDepth;
  const int64_t rest = (depth % kSectionDepth + kQuad - 1) / kQuad;  // steps
  // The rest of the keys and of a tile of queries, with zeros behind it.
  alignas(64) uint8_t last_keys[kSectionBytes];
  alignas(64) uint8_t last_queries[kMaxTileRows * kSectionDepth];
  if (rest > 0) {
    __builtin_memset(last_keys, 0, sizeof(last_keys));
    __builtin_memset(last_queries, 0, sizeof(last_queries));
    __builtin_memcpy(last_keys, k + sections * kSectionBytes, rest * kStepBytes);
  }
  for (int64_t tile = 0; tile < rows.tiles; ++tile) {
    const int64_t first = rows.First(tile);
    const auto* q = static_cast<const uint8_t*>(queries) + first * q_stride;
    ZeroSums();
    for (int64_t section = 0; section < sections; ++section) {
      AddSection<Product>(q + section * kSectionDepth, q_stride, k + section * kSectionBytes,
                          kStepBytes, fetch);
    }
    if (rest > 0) {
      for (int64_t row = 0; row < rows.height; ++row) {
        __builtin_memcpy(last_queries + row * kSectionDepth,
                         q + row * q_stride + sections * kSectionDepth, rest * kQuad);
      }
      AddSection<Product>(last_queries, kSectionDepth, last_keys, kStepBytes, fetch);
    }
    StoreSums(scores + first * kTileTokens);
  }
}

}  // namespace
}  // namespace godwit::kernels
