// StoreMeans: the mean key and the mean value of every block of a text, stored as keys and values.
#pragma once

#include <cstdint>

#include "ops/exec.h"
#include "ops/kv_layout.h"
#include "ops/kv_view.h"

namespace godwit::ops {

// Stores the means of `blocks` of a layer, for every KV head: those of block b at position b of
// `to`. A block has `block_tokens` tokens, whole tiles that `from` holds. Its means are a function
// of its own keys and values, as they are stored. Sums are in the order of the tokens. Both views
// have this layout. On all cores. Throws what StoreRow throws.
void StoreMeans(const Exec& exec, const KvLayout& layout, int64_t layer, const KvView& from,
                int64_t block_tokens, KvRange blocks, const KvView& to);

}  // namespace godwit::ops
