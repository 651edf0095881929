// The gated delta rule (Gated DeltaNet, arXiv 2412.06464, section 3), a recurrent layer on the grid
// of tiles (state_piece.h). Each value head has a state S [key_dim, value_dim], 0 before the text:
//   S[t] = a[t] * S[t - 1] + k[t]^T u[t]
//   u[t] = beta[t] * (v[t] - k[t] (a[t] * S[t - 1])),   out[t] = q[t] S[t]
// Several value heads share a key head's q and k.
//
// Inside a tile that begins with S, with A(t, j) the product of the decays a behind j up to t:
//   u[t] = beta[t] * (v[t] - A(t, begin) * k[t] S - sum over j < t of A(t, j) (k[t] . k[j]) u[j])
//   out[t] = A(t, begin) * q[t] S + sum over j <= t of A(t, j) (q[t] . k[j]) u[j]
// This is the chunkwise form (section 3.3), and it solves the tile's triangle row by row. A single
// token reads S and writes one row. Its state is S of each value head, then the last taps - 1
// inputs of the convolution. Its rows are the inputs of the convolution, keys, all u, and decays.
#pragma once

#include <cstdint>
#include <span>

#include "ops/exec.h"
#include "ops/state_piece.h"
#include "tensor/view.h"

namespace godwit::ops {

struct DeltaNetShape {
  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads
  int64_t key_dim = 0;      // of a head
  int64_t value_dim = 0;    // of a head
  int64_t taps = 0;         // of the convolution, at most kMaxConvolutionTaps
  // Whether value heads take key heads in turn: head h has h % key_heads. Else those of a key head
  // follow one another.
  bool in_turn = false;

  int64_t keys() const { return key_heads * key_dim; }
  int64_t values() const { return value_heads * value_dim; }
  int64_t convolved() const { return 2 * keys() + values(); }  // q, k and v
  int64_t head_state() const { return key_dim * value_dim; }
  int64_t group() const { return value_heads / key_heads; }
  int64_t KeyHeadOf(int64_t value_head) const {
    return in_turn ? value_head % key_heads : value_head / group();
  }
  // Value head i of a key head's.
  int64_t ValueHeadOf(int64_t key_head, int64_t i) const {
    return in_turn ? i * key_heads + key_head : key_head * group() + i;
  }
  // The numbers of a state, and of a row.
  int64_t state_floats() const { return value_heads * head_state() + (taps - 1) * convolved(); }
  int64_t row_floats() const { return convolved() + keys() + values() + value_heads; }

  bool operator==(const DeltaNetShape&) const = default;
};

struct DeltaNetWeights {
  MatrixView<const float> taps;         // [taps, convolved], the oldest position's first
  std::span<const float> decay_rates;   // [value_heads], positive
  std::span<const float> decay_biases;  // [value_heads]
};

// in: [rows, convolved], those of all pieces: q, k and v of all heads, which go through a causal
// convolution and SiLU. q and k are then divided by their lengths, and q by the root of key_dim.
// gates: [rows, 2 * value_heads]: beta = sigmoid(gates[h]) and
//   a = exp(-decay_rates[h] * softplus(gates[value_heads + h] + decay_biases[h]))
// out: [rows, values].
void GatedDeltaNet(const Exec& exec, const DeltaNetShape& shape, const DeltaNetWeights& weights,
                   std::span<const StatePiece> pieces, MatrixView<const float> in,
                   MatrixView<const float> gates, MatrixView<float> out);

}  // namespace godwit::ops
