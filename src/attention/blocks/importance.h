// The tokens of a block that matter most to those that come after them, by the attention they get.
#pragma once

#include <cstdint>
#include <span>

#include "attention/blocks/choose_by_keys.h"
#include "attention/geometry.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// Of the tokens [begin, end), whole blocks of `block_tokens`, whose keys kv holds: to places
// [blocks * kv_heads, count] those of each block, by their places in it and in ascending order,
// that get most attention from `queries`, each of which stands in [begin, end), in ascending order,
// and shares its attention among these tokens up to itself; added up over the queries and the heads
// of a KV head. Between equals the earlier token comes first, and what is not finite is worth
// nothing. Keys are as they are stored. Sums are in a fixed order. On all cores.
void FindImportant(const Exec& exec, const AttentionGeometry& geometry, const ops::KvView& kv,
                   int64_t block_tokens, std::span<const PlacedQuery> queries, int64_t begin,
                   int64_t end, MatrixView<uint16_t> places);

}  // namespace godwit
