// The blocks of a text that matter to a query, by their representatives.
#pragma once

#include <cstdint>
#include <span>

#include "attention/blocks/block_index.h"
#include "attention/geometry.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// Blocks [first, last) of which `count` are to be chosen; those before `first` are seen anyway.
struct BlockChoice {
  int64_t first;
  int64_t last;
  int64_t count;  // at most last - first
};

// For the query of one token, q [heads, head_dim] at `position`: to chosen [choices, count] the
// numbers of the chosen blocks, in ascending order; choices is 1 or kv_heads. `index` holds the
// blocks before choice.last.
//
// A head scores parts (representatives.h), and by a softmax over those of all blocks before
// choice.last knows what share of its attention each would get. A block is worth the largest share
// that one of its parts gets from one of the heads that choose together: so a head that is sure of
// few parts outweighs one that looks nowhere in particular, and none by the length of its vectors.
// Between equals the earlier block is chosen.
void SelectBlocks(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                  int64_t layer, MatrixView<const float> q, int64_t position,
                  const BlockChoice& choice, MatrixView<int32_t> chosen);

}  // namespace godwit
