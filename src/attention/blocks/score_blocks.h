// What the heads of a token make of the blocks of a text, by their representatives.
#pragma once

#include <cstdint>

#include "attention/blocks/block_index.h"
#include "attention/geometry.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// Parts of a block that are scored: its parts, or of signs its tiles, each as high as its highest
// key.
inline int64_t ScoredParts(const BlockShape& shape) {
  return shape.signs() ? shape.tokens / kernels::kTileTokens : shape.parts;
}

// Of the first `blocks` of a layer, for the query of one token, q [heads, head_dim] at `position`:
// scores [heads, blocks * ScoredParts, rounded up to kTileTokens], times log2(e), and -infinity
// behind the last. The index holds those blocks. ALiBi's part is that of a part's, or a tile's,
// last key. On all cores.
void ScoreBlocks(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                 int64_t layer, MatrixView<const float> q, int64_t position, int64_t blocks,
                 MatrixView<float> scores);

}  // namespace godwit
