// The gated delta rule (Gated DeltaNet, arXiv 2412.06464, section 3), a recurrent layer on the grid
// of tiles (state_piece.h). Each value head has a state S [key_dim, value_dim], 0 before the text:
//   S[t] = a[t] * S[t - 1] + k[t]^T u[t]
//   u[t] = beta[t] * (v[t] - k[t] (a[t] * S[t - 1])),   out[t] = q[t] S[t]
// Several value heads share a key head's q and k. In Kimi Delta Attention (arXiv 2510.26692,
// section 3) a[t] has a number for each of key_dim channels, which are the rows of S.
//
// Inside a tile that begins with S, with A(t, j) the product of the decays a behind j up to t:
//   u[t] = beta[t] * (v[t] - A(t, begin) * k[t] S - sum over j < t of A(t, j) (k[t] . k[j]) u[j])
//   out[t] = A(t, begin) * q[t] S + sum over j <= t of A(t, j) (q[t] . k[j]) u[j]
// With decays of channels A(t, j) multiplies the channels of k[t] and q[t], before their products.
// This is the chunkwise form (section 3.3), and it solves the tile's triangle row by row. A single
// token reads S and writes one row. Its state is S of each value head, then the last taps - 1
// inputs of the convolution. Its rows are the inputs of the convolution, keys, all u, and decays.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "ops/matrix_state.h"
#include "ops/state_piece.h"
#include "tensor/view.h"

namespace godwit::ops {

// The heads of keys, which queries share, and of values.
using DeltaNetShape = MatrixStateShape;

struct DeltaNetWeights {
  MatrixView<const float> taps;         // [taps, convolved], the oldest position's first
  std::span<const float> decay_rates;   // [value_heads], positive
  std::span<const float> decay_biases;  // [shape.decays()]
  float update_scale = 1;               // a factor on beta: 2 allows negative eigenvalues
};

// in: [rows, convolved], those of all pieces: q, k and v of all heads, which go through a causal
// convolution and SiLU. q and k are then divided by their lengths, and q by the root of key_dim.
// gates: [rows, value_heads + shape.decays()]: beta = update_scale * sigmoid(gates[h]) and
//   a = exp(-decay_rates[h] * softplus(gates[value_heads + h] + decay_biases[h]))
// With decays of channels, h counts channels behind value_heads and in the biases.
// out: [rows, values].
void GatedDeltaNet(const Exec& exec, const DeltaNetShape& shape, const DeltaNetWeights& weights,
                   std::span<const StatePiece> pieces, MatrixView<const float> in,
                   MatrixView<const float> gates, MatrixView<float> out);

}  // namespace godwit::ops
