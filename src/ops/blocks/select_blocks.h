// The blocks of a text that matter to a query, by their representatives.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/blocks/index_view.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Blocks [first, last) of which `count` are to be chosen; those before `first` are seen anyway.
struct BlockChoice {
  int64_t first;
  int64_t last;
  int64_t count;  // at most last - first
  // Whether heads that choose together add their scores up, without a softmax. A block is then
  // worth the largest sum of one of its parts (TokenSwift, arXiv 2502.18890, equation 2).
  bool sums = false;
  bool ranked = false;  // whether the chosen blocks come in descending order of their worth
};

// Selects blocks for the query of one token, q [heads, head_dim] at `position`. chosen [choices,
// count] gets their numbers, in ascending order unless choice.ranked; choices is 1 or kv_heads.
// `index` holds the blocks before choice.last.
//
// A head scores parts (representatives.h). A softmax over the parts of all blocks before
// choice.last gives the share of its attention for each. A block is worth the largest share that
// one of its parts gets from one of the heads that choose together. A head that is sure of few
// parts thus outweighs one that looks nowhere in particular, and the length of its vectors does not
// matter. Among equals the earlier block is chosen.
void SelectBlocks(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                  const IndexView& index, MatrixView<const float> q, int64_t position,
                  const BlockChoice& choice, MatrixView<int32_t> chosen);

}  // namespace godwit::ops
