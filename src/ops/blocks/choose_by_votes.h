// A choice among the blocks of a text by the votes of several queries: SnapKV (arXiv 2404.14469),
// for blocks as KTransformers' long-context text has them.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/blocks/choose_by_keys.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Chooses the `chosen.cols` of blocks [first, last) that get most votes. A token gets as votes the
// attention that the queries give it, added up over queries and over the heads that choose
// together. Each query shares its attention among all tokens up to itself, whose keys kv holds.
//
// A block has the votes of its tokens and of `pool_tokens` tokens on either side, as far as they
// lie in blocks [first, last). With block_tokens 1 that orders tokens as an average over 2 *
// pool_tokens + 1 of them does, with zeros at the ends. Votes that are not finite count nothing.
// Among equals the earlier block comes first.
//
// chosen [choices, count] gets the blocks in ascending order; choices is 1 or kv_heads. Keys are as
// they are stored. Sums are in a fixed order. On all cores.
void ChooseByVotes(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                   const KvView& kv, int64_t block_tokens, int64_t pool_tokens,
                   std::span<const PlacedQuery> queries, int64_t first, int64_t last,
                   MatrixView<int32_t> chosen);

}  // namespace godwit::ops
