// Mamba2 (arXiv 2405.21060, section 7), a recurrent layer on the grid of tiles (state_piece.h).
// Each head has a state S [state_dim, head_dim], 0 before the text:
//   S[t] = a[t] * S[t - 1] + step[t] * B[t]^T x[t],   out[t] = C[t] S[t] + D * x[t]
// Several heads, one after another, share the B and C of a group.
//
// Inside a tile that begins with S, with A(t, j) the product of the decays a behind j up to t:
//   out[t] = A(t, begin) * C[t] S + sum over j <= t of A(t, j) (C[t] . B[j]) step[j] x[j] + D x[t]
// This is the chunkwise form (section 6). A single token reads S and writes one row. The state and
// the rows are those of matrix_state.h: B are the keys, step * x the values, groups the key heads.
#pragma once

#include <limits>
#include <span>

#include "ops/exec.h"
#include "ops/matrix_state.h"
#include "ops/state_piece.h"
#include "tensor/view.h"

namespace godwit::ops {

// The lengths of steps are brought into this range.
struct StepRange {
  float min = 0;
  float max = std::numeric_limits<float>::infinity();

  bool operator==(const StepRange&) const = default;
};

struct Mamba2Numbers {
  MatrixView<const float> taps;        // [taps, convolved], the oldest position's first
  std::span<const float> bias;         // [convolved] of the convolution, or empty
  std::span<const float> decay_rates;  // [value_heads], positive
  std::span<const float> step_biases;  // [value_heads]
  std::span<const float> skips;        // [value_heads]: D
  StepRange steps = {};
};

// in: [rows, convolved], those of all pieces: x of all heads, B, then C of all groups, which go
// through a causal convolution and SiLU. steps: [rows, value_heads]:
//   step = softplus(steps[h] + step_biases[h]) in its range,   a = exp(-decay_rates[h] * step)
// out: [rows, values]; it may be the columns of x in `in`.
void Mamba2(const Exec& exec, const MatrixStateShape& shape, const Mamba2Numbers& numbers,
            std::span<const StatePiece> pieces, MatrixView<const float> in,
            MatrixView<const float> steps, MatrixView<float> out);

}  // namespace godwit::ops
