// The tokens of a block that matter most to those that come after them, by the attention they get.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/blocks/choose_by_keys.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Finds in each block those tokens that get most attention from `queries`. Tokens [begin, end) are
// whole blocks of `block_tokens`, whose keys kv holds. Each query stands in [begin, end), in
// ascending order, and shares its attention among these tokens up to itself. Attention is added up
// over the queries and the heads of a KV head. Among equals the earlier token comes first;
// attention that is not finite counts nothing.
//
// places [blocks * kv_heads, count] gets the tokens of each block, by their places in it, in
// ascending order. Keys are as they are stored. Sums are in a fixed order. On all cores.
void FindImportant(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                   const KvView& kv, int64_t block_tokens, std::span<const PlacedQuery> queries,
                   int64_t begin, int64_t end, MatrixView<uint16_t> places);

}  // namespace godwit::ops
