// Steps of recurrent layers whose heads remember a matrix (gated_delta_net.h, mamba2.h), on the
// grid of tiles (state_piece.h). The state S [key_dim, value_dim] of each value head follows
//   S[t] = a[t] * S[t - 1] + k[t]^T u[t]
// with a decay a, a key k and a value u of each position. Several value heads share the
// keys of a key head. Keys and values come out of a causal convolution. A decay is a number of the
// value head, or key_dim numbers, one for each row of S.
//
// A tile's state is that of each value head, then the last taps - 1 inputs of the convolution.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel_table.h"
#include "ops/exec.h"
#include "ops/state_piece.h"
#include "tensor/view.h"

namespace godwit::ops {

struct MatrixStateShape {
  int64_t key_heads = 0;
  int64_t value_heads = 0;  // a multiple of key_heads
  int64_t key_dim = 0;      // of a head
  int64_t value_dim = 0;    // of a head
  int64_t taps = 0;         // of the convolution, at most kMaxConvolutionTaps
  // Whether value heads take key heads in turn: head h has h % key_heads. Else those of a key head
  // follow one another.
  bool in_turn = false;
  // Whether each row of a state has a decay of its own. Then each key head has one value head.
  bool channel_decays = false;

  int64_t keys() const { return key_heads * key_dim; }
  int64_t values() const { return value_heads * value_dim; }
  int64_t decays() const { return channel_decays ? keys() : value_heads; }
  int64_t group() const { return value_heads / key_heads; }  // value heads of a key head
  int64_t KeyHeadOf(int64_t value_head) const {
    return in_turn ? value_head % key_heads : value_head / group();
  }
  // Value head i of a key head's.
  int64_t ValueHeadOf(int64_t key_head, int64_t i) const {
    return in_turn ? i * key_heads + key_head : key_head * group() + i;
  }
  int64_t convolved() const { return 2 * keys() + values(); }  // queries, keys and values
  int64_t head_state() const { return key_dim * value_dim; }
  int64_t head_states() const { return value_heads * head_state(); }
  // The numbers of a state, and of a row.
  int64_t state_floats() const { return head_states() + (taps - 1) * convolved(); }
  int64_t row_floats() const { return convolved() + keys() + values() + decays(); }

  bool operator==(const MatrixStateShape&) const = default;
};

// The kept row of a position, in parts.
struct MatrixRow {
  MatrixRow(const MatrixStateShape& shape, float* row)
      : inputs(row),
        keys(inputs + shape.convolved()),
        values(keys + shape.keys()),
        decays(values + shape.values()) {}

  float* inputs;  // [convolved], of the convolution
  float* keys;    // [keys]: k
  float* values;  // [values]: u
  float* decays;  // [decays()]: a
};

// Columns [first, last) of a piece behind the convolution and SiLU: from `in` to `out`, both [rows,
// convolved]. Keeps the inputs. taps [taps, convolved], bias [convolved] or empty.
void ConvolveInputs(const Exec& exec, const MatrixStateShape& shape, MatrixView<const float> taps,
                    std::span<const float> bias, const StatePiece& piece,
                    MatrixView<const float> in, MatrixView<float> out, int64_t first, int64_t last);

float Softplus(float x);

// The number of first pieces that write no row which an earlier one of them reads. Tiles of a long
// chunk that will not be kept lie in the same memory, one after another.
size_t PiecesOfRound(std::span<const StatePiece> pieces);

// The parts into which columns of a value head are cut, so that every thread has work.
int64_t PartsOfHead(const Exec& exec, const MatrixStateShape& shape);

// Memory of all threads for MatrixHead.
struct MatrixScratch {
  MatrixView<float> products;       // [threads * products of a thread, value_dim]
  MatrixView<float> weights;        // [threads, key_dim * (kTileTokens + 1)]
  MatrixView<const float*> places;  // [2 * threads, ...]
  MatrixView<float*> outs;          // [threads, ...]
};
// products: rows of products that a thread needs.
MatrixScratch NewMatrixScratch(const Exec& exec, const MatrixStateShape& shape, int64_t products);

// Columns [first, last) of a value head in one piece after another.
class MatrixHead {
 public:
  MatrixHead(const Exec& exec, const MatrixStateShape& shape, const MatrixScratch& scratch,
             int worker, int64_t head, int64_t first, int64_t last);

 protected:
  // Columns of the head's u at a position of the tile.
  float* Values(const StatePiece& piece, int64_t slot) const {
    return MatrixRow(shape_, piece.kept[slot]).values + first_;
  }
  // The place of the key head's numbers among those of all.
  int64_t key_place() const { return key_head_ * shape_.key_dim; }

  // products = weights_ [rows] times the state at the tile's beginning.
  void MultiplyState(const StatePiece& piece, int64_t rows);
  // outs_[i] += the sum over j < count of weights_[i][j] * from_[first + j].
  void AddRows(int64_t rows, int64_t count, int64_t first = 0) const;
  // decays_[j] = the product of the decays behind position j up to `slot`. Returns that of all up
  // to `slot`, by which the state at the tile's beginning decays.
  float FindDecays(const StatePiece& piece, int64_t slot);
  // The state behind the tile, from the values of all its positions.
  void WriteState(const StatePiece& piece);

  const Exec& exec_;
  const MatrixStateShape& shape_;
  const int64_t head_, key_head_;
  const int64_t first_, columns_;  // of all value heads' columns
  const int64_t state_;            // the place of the columns in a state
  const MatrixView<float> products_;
  const float** const weights_;  // arguments of the kernel
  const float** const from_;
  float** const outs_;
  std::array<float, kernels::kTileTokens> decays_;

 private:
  // transposed_ = the keys of all the tile's positions, times their decays up to the tile's end.
  // state_decays_ = the decays of the state at its beginning.
  void WeighKeys(const StatePiece& piece);
  void WeighKeysByChannel(const StatePiece& piece);

  float* const transposed_;    // [key_dim, kTileTokens]
  float* const state_decays_;  // [key_dim]
};

}  // namespace godwit::ops
