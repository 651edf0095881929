// Attention of query rows over cached keys and values, whoever cached them.
//
// A policy says which cached positions each token sees; this file does the arithmetic. Keys come in
// tiles of kernels::kTileTokens, cut by text position. A query folds the tiles of one *stretch*
// (kStretchTiles tiles, cut by position too) in ascending order, and the states of the stretches in
// ascending order again. The two levels let many cores share one query over a long context and
// still add in one order, so neither the threads nor the chunks of a prompt show in the result.
#pragma once

#include <cstdint>
#include <span>

#include "ops/alibi.h"
#include "ops/exec.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace godwit::ops {

inline constexpr int64_t kStretchTiles = 16;  // 1024 positions

// The keys and values of one layer. Position p lies in tile (p / kTileTokens) modulo the number of
// pages, so a ring is a store with fewer pages than the text has tiles.
struct KvView {
  DType dtype;                              // F32, F16, BF16 or I8
  std::span<const std::byte* const> pages;  // each: one tile of every layer and KV head
  int64_t layer_offset;                     // bytes from a page to this layer's first head
  int64_t head_bytes;                       // bytes from one KV head to the next
  int64_t value_offset;                     // bytes from a head's keys to its values
  int64_t scale_offset = 0;                 // I8: and to the f32 scales of the tile's keys

  const std::byte* Keys(int64_t head, int64_t tile) const {
    return pages[static_cast<size_t>(tile) % pages.size()] + layer_offset + head * head_bytes;
  }
  const std::byte* Values(int64_t head, int64_t tile) const {
    return Keys(head, tile) + value_offset;
  }
  // Of I8: those of the keys [kTileTokens], then those of the values.
  const float* Scales(int64_t head, int64_t tile) const {
    return reinterpret_cast<const float*>(Keys(head, tile) + scale_offset);
  }
};

// The text positions [begin, end).
struct KvRange {
  int64_t begin;
  int64_t end;
};

// One body of cached rows and how each query token sees it.
struct AttentionSource {
  KvView kv;
  MatrixView<const float> q;         // queries encoded for this source, in head-major order (below)
  std::span<const KvRange> visible;  // [tokens]
  std::span<const AlibiPlace> places = {};  // [tokens]; not read without ALiBi
  // With int8 products, set by Attention itself: q is integers, of these scales [rows of q].
  const float* q_scales = nullptr;
};

struct AttentionShape {
  int64_t heads;
  int64_t kv_heads;  // divides heads; query head h reads KV head h / (heads / kv_heads)
  int64_t head_dim;
  float scale;  // of the scores
  // Beside int8 keys and values alone: each query and, tile by tile, the weights of the values are
  // quantized too, and both products are those of int8 (SmoothQuant, figure 3.3). The softmax stays
  // in float. The weights of a tile have the scale of their largest: with 1/127 for all, as the
  // paper's code has it, a token that sees many would see none.
  bool int8_products = false;
};

// Head-major order: the rows of all tokens that share a KV head lie together, so that one pass over
// its keys serves them all. Row index of (token, head) among tokens * heads rows:
inline int64_t HeadMajorRow(const AttentionShape& shape, int64_t tokens, int64_t token,
                            int64_t head) {
  const int64_t group = shape.heads / shape.kv_heads;
  return (head / group * tokens + token) * group + head % group;
}

// out [tokens, heads * head_dim]: softmax over the keys of all sources together. A token that sees
// nothing gets zeros. The keys of a token in different sources must be different keys.
//
// alibi: a bias on every score; empty slopes: none.
//
// sink_logits [heads], or empty: in head h the softmax has one more term, exp(sink_logits[h]), that
// no value belongs to. Zeros make it SoftMax_1, the "zero sink" of StreamingLLM (section 3.3).
void Attention(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
               std::span<const AttentionSource> sources, std::span<const float> sink_logits,
               MatrixView<float> out);

}  // namespace godwit::ops
