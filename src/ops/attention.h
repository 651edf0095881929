// Attention of query rows over cached keys and values.
//
// A policy says which cached positions each row sees. This file does the arithmetic, for the rows
// of all texts of a step at once. Keys come in tiles of kernels::kTileTokens, cut by text position.
// A query folds the tiles of one *stretch* (kStretchTiles tiles, cut by position too) in ascending
// order. It then folds the states (attention_state.h) of the stretches in ascending order. The two
// levels let many cores share one query over a long context and still add in one order. The result
// therefore depends neither on threads, nor on the chunks of a prompt, nor on other texts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "kernels/kernel_table.h"
#include "ops/alibi.h"
#include "ops/exec.h"
#include "ops/kv_view.h"
#include "tensor/view.h"

namespace godwit::ops {

inline constexpr int64_t kStretchTiles = 16;
inline constexpr int64_t kStretchTokens = kStretchTiles * kernels::kTileTokens;  // positions
// The number of query rows of a KV head that go through a tile one after the other. Up to
// kMaxSharedRows rows, cores share the stretches of a long context.
inline constexpr int64_t kBlockRows = 64;
inline constexpr int64_t kMaxSharedRows = 4 * kBlockRows;

// The keys that a row sees, by its own position p in the text. They lie in [begin, end), up to p
// itself, and are among the last `window` positions. They also lie in p's own block of `block`
// positions or the `overlap` before it. Rows outside [from, until) see none.
struct Visible {
  int64_t begin = 0;
  int64_t end = INT64_MAX;
  int64_t window = INT64_MAX;
  int64_t block = INT64_MAX;
  int64_t overlap = 0;
  int64_t from = 0;
  int64_t until = INT64_MAX;

  // Both ends rise with p.
  KvRange At(int64_t p) const {
    if (p < from || p >= until) return {0, 0};
    return {std::max({begin, p - window + 1, p - p % block - overlap}), std::min(end, p + 1)};
  }
};

// The positions tile * kTileTokens + [begin, end), less those i of which bit i is set in `hidden`.
struct TilePart {
  int64_t tile;
  int32_t begin;
  int32_t end;
  uint64_t hidden = 0;
};

// One body of cached rows and how the rows of a text see it.
struct AttentionSource {
  KvView kv;
  MatrixView<const float> q;  // queries encoded for this source, in head-major order (below)
  Visible visible;
  // The parts of the visible positions that are looked at: for every KV head a list, the same for
  // all rows. A list is in ascending order, with each part in a tile of its own. With parts, a
  // stretch is kStretchTiles parts. Empty: all visible positions.
  std::span<const std::span<const TilePart>> parts = {};
  // The position of the queries in the cache, for ALiBi; none: each at its place in the text. The
  // keys stand at their own positions, or are moved with the query, so that distances are those in
  // the text.
  std::optional<int64_t> query_place = {};
  bool keys_move = false;
  // Whether both products are those of int8, if kv is I8 (SmoothQuant, figure 3.3). Each query, and
  // tile by tile the weights of the values, are then quantized, too. The softmax stays in float.
  // The weights of a tile have the scale of their largest. With 1/127 for all, as the paper's code
  // has it, a token that sees many would see none.
  bool int8_products = false;
  // Numbers that are added to the scores instead of ALiBi's bias, the same for all tokens; no rows:
  // none. Head h has row h * biases.rows / heads, a number for every position up to the end of its
  // tile. -infinity hides a key.
  MatrixView<const float> biases = {};

  AlibiPlace PlaceOf(int64_t p) const {
    const int64_t query = query_place.value_or(p);
    return {.query = query, .shift = keys_move ? query - p : 0};
  }
};

// Consecutive rows of one text.
struct AttentionRows {
  int64_t first_row;  // in `out`
  int64_t rows;
  int64_t position;  // of the first row, in the text
  std::span<const AttentionSource> sources;
  // Where the rows' states (attention_state.h) go instead of to `out`, for callers that merge them
  // with states over other keys; or null. [rows * heads, StateStride(value_dim)], in head-major
  // order.
  float* states = nullptr;
  // The rows' states over other keys, with which their sums begin, in the form of `states`; or
  // null. The bits are those of one call over all keys, where the stretches of this call's keys
  // follow those of the others. May be the memory of `states`.
  const float* before = nullptr;
};

struct AttentionShape {
  int64_t heads;
  int64_t kv_heads;     // divides heads; query head h reads KV head h / (heads / kv_heads)
  int64_t head_dim;     // of queries and keys, at most kMaxHeadDim (kernel_table.h)
  float scale;          // of the scores
  float score_cap = 0;  // a score s becomes cap * tanh(s / cap), before a bias; 0: none
  // The first number of the keys that is also one of the values, as they are stored; such values
  // are not cached besides. Latent attention has it (DeepSeek-V2, section 2.1). A multiple of
  // kernels::kQuad, so that numbers which lie side by side are all of them values or none. None:
  // values of their own, as wide as keys.
  std::optional<int64_t> values_from = {};

  int64_t value_dim() const { return head_dim - values_from.value_or(0); }
};

// Head-major order: the rows of all tokens that share a KV head lie together, so that one pass over
// its keys serves them all. Returns the row index of (token, head) among tokens * heads rows.
inline int64_t HeadMajorRow(const AttentionShape& shape, int64_t tokens, int64_t token,
                            int64_t head) {
  const int64_t group = shape.heads / shape.kv_heads;
  return (head / group * tokens + token) * group + head % group;
}

// Computes out [rows, heads * value_dim]: for each row of each text the softmax over the keys of
// all of the text's sources together. A row that sees nothing gets zeros. The keys of a row in
// different sources must be different keys. Rows of `out` that belong to no text are left alone.
//
// alibi: a bias on every score; empty slopes: none.
//
// sink_logits [heads], or empty: in head h the softmax has one more term, exp(sink_logits[h]), to
// which no value belongs. Zeros make it SoftMax_1, the "zero sink" of StreamingLLM (section 3.3).
void Attention(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
               std::span<const AttentionRows> texts, std::span<const float> sink_logits,
               MatrixView<float> out);

}  // namespace godwit::ops
