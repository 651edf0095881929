// How much of a token's attention whole blocks get, by the keys themselves: a second look at what
// an index has named.
#pragma once

#include <cstdint>

#include "attention/geometry.h"
#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit {

// For the query of one token, q [heads, head_dim] at `position`, and blocks [rows, blocks], which
// the heads of a row look at together, each of `block_tokens` tokens, whole tiles that kv holds:
// masses [heads, blocks], log2 of the sum over a block's keys of e^score. Keys are as they are
// stored, and queries float, bf16 or two int8, each a 127th of the other's step, beside them. Sums
// are in a fixed order. On all cores.
void WeighBlocks(const Exec& exec, const AttentionGeometry& geometry, const ops::KvView& kv,
                 int64_t block_tokens, MatrixView<const float> q, int64_t position,
                 MatrixView<const int32_t> blocks, MatrixView<float> masses);

}  // namespace godwit
