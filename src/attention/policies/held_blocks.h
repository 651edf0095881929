// What is derived from the keys of a text reads them by blocks, of a cache in a file, too.
#pragma once

#include <cstdint>
#include <functional>

#include "attention/policies/blocks_geometry.h"
#include "attention/policy.h"

namespace godwit {

// Of the blocks that are held, those from number `begin` to `end`, counted from the first: make(kv,
// last) gets them a piece at a time, up to `last`, in a view in which the first that is held is the
// first. No more of a file than a piece need be in memory together.
void ReadHeldBlocks(const RowRun& run, int64_t layer, const BlockRange& held, int64_t block_size,
                    int64_t begin, int64_t end,
                    const std::function<void(const ops::KvView& kv, int64_t last)>& make);

// Of these, how many belong to the text, whatever a step has brought beside it.
inline int64_t LastingBlocks(const RowRun& run, const BlockRange& held, int64_t block_size) {
  return held.CountBefore(run.cache->length() / block_size);
}

}  // namespace godwit
