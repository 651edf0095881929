// The Hadamard rotation of heads: it spreads a few large numbers over a head (kv_layout.h).
#pragma once

#include <cstdint>

#include "ops/exec.h"
#include "tensor/view.h"

namespace godwit::ops {

// Multiplies each head of x [rows, heads * head_dim] by the Hadamard matrix, in place. It is its
// own inverse, so that sums of rotated values become sums of values.
void HadamardHeads(const Exec& exec, int64_t head_dim, MatrixView<float> x);

}  // namespace godwit::ops
