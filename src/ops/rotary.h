// Rotary position encoding of query and key rows.
#pragma once

#include <span>

#include "ops/attention.h"
#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Cosine and sine of every rotated pair at every token's position.
struct RotaryTable {
  MatrixView<const float> cos;  // [tokens, rotary_dim / 2]
  MatrixView<const float> sin;  // [tokens, rotary_dim / 2]
  // [tokens, 1], factors on queries, or no rows: none.
  MatrixView<const float> query_scale = {};
  // [head_dim], factors on the dimensions of queries, or none.
  std::span<const float> query_gain = {};

  // The table of `count` tokens from `first` on.
  RotaryTable Rows(int64_t first, int64_t count) const {
    return {
        .cos = cos.Rows(first, first + count),
        .sin = sin.Rows(first, first + count),
        .query_scale = query_scale.rows == 0 ? query_scale : query_scale.Rows(first, first + count),
        .query_gain = query_gain};
  }
};

// Copies x [tokens, heads * head_dim] into out in head-major order (ops/attention.h), [tokens *
// heads, head_dim]. Rotates the first rotary_dim dimensions of each row: pair i is (i, i +
// rotary_dim / 2). Then a row is multiplied by its token's factor and by those of its dimensions,
// if there are any. With shape.heads == shape.kv_heads that is the order of keys.
void RotateHeadMajor(const Exec& exec, const AttentionShape& shape, MatrixView<const float> x,
                     const RotaryTable& table, MatrixView<float> out);

}  // namespace godwit::ops
