// A choice among some blocks of a text by all of their keys, as attention itself would make it.
#pragma once

#include <cstdint>
#include <span>

#include "attention/geometry.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// What is left of the blocks that are named. A block is worth the largest share of its attention
// that one of the heads gives it; between equals the one that is named first comes first.
struct ShareLimit {
  int64_t seen;   // the first so many that are named are seen anyway
  int64_t least;  // to be chosen, if there are as many
  // Beyond these no more are chosen once every head has this share of what it gives all those
  // named.
  double top_p = 1;
};

// For the query of one token, q [heads, head_dim] at `position`, and blocks [choices, blocks], each
// of `block_tokens` tokens before it: to chosen [choices, most] those that are left, in ascending
// order and -1 behind them. choices is 1 or kv_heads. On all cores.
void ChooseByKeys(const Exec& exec, const AttentionGeometry& geometry, const ops::KvView& kv,
                  int64_t block_tokens, MatrixView<const float> q, int64_t position,
                  MatrixView<const int32_t> blocks, const ShareLimit& limit,
                  MatrixView<int32_t> chosen);

// The query of one token, [heads, head_dim], rotated at its position.
struct PlacedQuery {
  int64_t position;
  std::span<const float> q;
};

// For several queries: of blocks [first, last) the `chosen.cols` that are worth most to one of
// them, as it shares its attention among whole blocks before it; chosen [choices, count] in
// ascending order. On all cores.
void ChooseForAll(const Exec& exec, const AttentionGeometry& geometry, const ops::KvView& kv,
                  int64_t block_tokens, std::span<const PlacedQuery> queries, int64_t first,
                  int64_t last, MatrixView<int32_t> chosen);

}  // namespace godwit
