// The attention that a token gives whole blocks, by the keys themselves: a second look at blocks
// that an index has named.
#pragma once

#include <cstdint>

#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Weighs blocks [rows, blocks] for the query of one token, q [heads, head_dim] at `position`. The
// heads of a row look at its blocks together. Each block has `block_tokens` tokens that kv holds:
// whole tiles, or a power of two below kTileTokens. masses [heads, blocks]: log2 of the sum over a
// block's keys of e^score. Keys are as they are stored. Queries are float, bf16 or two int8 beside
// them, each a 127th of the other's step. Sums are in a fixed order. On all cores.
void WeighBlocks(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                 const KvView& kv, int64_t block_tokens, MatrixView<const float> q,
                 int64_t position, MatrixView<const int32_t> blocks, MatrixView<float> masses);

}  // namespace godwit::ops
