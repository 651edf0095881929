// A choice among some blocks of a text by all of their keys, as attention itself would make it.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// The limits of a choice among named blocks. A block is worth the largest share of its attention
// that one of the heads gives it. Among equals the block that is named first comes first.
struct ShareLimit {
  int64_t seen;   // the first so many named blocks are seen anyway
  int64_t least;  // the fewest to choose, if there are as many
  // The share at which the choice ends: every head then has this share of what it gives all named
  // blocks. At least `least` are chosen.
  double top_p = 1;
};

// Chooses for the query of one token, q [heads, head_dim] at `position`, among blocks [choices,
// blocks], each of `block_tokens` tokens before it. chosen [choices, most] gets those within the
// limit, in ascending order and -1 behind them. choices is 1 or kv_heads. On all cores.
void ChooseByKeys(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                  const KvView& kv, int64_t block_tokens, MatrixView<const float> q,
                  int64_t position, MatrixView<const int32_t> blocks, const ShareLimit& limit,
                  MatrixView<int32_t> chosen);

// The query of one token, [heads, head_dim], rotated at its position.
struct PlacedQuery {
  int64_t position;
  std::span<const float> q;
};

// Chooses for several queries the `chosen.cols` of blocks [first, last) that are worth most to one
// of them. A query shares its attention among whole blocks before it. chosen [choices, count] gets
// them in ascending order. On all cores.
void ChooseForAll(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                  const KvView& kv, int64_t block_tokens, std::span<const PlacedQuery> queries,
                  int64_t first, int64_t last, MatrixView<int32_t> chosen);

}  // namespace godwit::ops
