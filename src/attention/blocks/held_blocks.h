// Reading of keys by blocks, from which policies derive data, also from a cache in a file.
#pragma once

#include <cstdint>
#include <functional>

#include "attention/blocks/blocks_geometry.h"
#include "attention/core/policy.h"

namespace godwit {

// Reads the held blocks from number `begin` to `end`, counted from the first, a piece at a time.
// make(kv, last) gets a piece up to `last`, in a view whose first block is the first that is held.
// No more of a file than a piece need be in memory together.
void ReadHeldBlocks(const RowRun& run, int64_t layer, const BlockRange& held, int64_t block_size,
                    int64_t begin, int64_t end,
                    const std::function<void(const ops::KvView& kv, int64_t last)>& make);

// The number of held blocks that belong to the text, without those that a step has only brought.
inline int64_t LastingBlocks(const RowRun& run, const BlockRange& held, int64_t block_size) {
  return held.CountBefore(run.cache->length() / block_size);
}

}  // namespace godwit
