#include "ops/mamba2.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kernels/kernel_table.h"
#include "ops/kept_inputs.h"
#include "ops/profile.h"

namespace godwit::ops {
namespace {

using kernels::kTileTokens;

constexpr int64_t kRowsTogether = 8;

struct Mamba2Scratch {
  MatrixView<float> mixed;  // [rows, convolved]: x, B and C behind the convolution
  MatrixView<float> dots;   // [rows, key_heads * kTileTokens]: C[t] . B[j]
  MatrixScratch heads;
};

// The steps and values of a piece's value heads [first, last).
void PrepareValues(const MatrixStateShape& shape, const Mamba2Numbers& numbers,
                   const Mamba2Scratch& scratch, const StatePiece& piece,
                   MatrixView<const float> steps, int64_t first, int64_t last) {
  const int64_t slot = std::ssize(piece.kept) - piece.rows, dim = shape.value_dim;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const int64_t row = piece.first_row + i;
    const float* const x = scratch.mixed.Row(row);
    const MatrixRow kept(shape, piece.kept[slot + i]);
    for (int64_t head = first; head < last; ++head) {
      const float length = Softplus(steps.Row(row)[head] + numbers.step_biases[head]);
      const float step = std::min(std::max(length, numbers.steps.min), numbers.steps.max);
      kept.decays[head] = std::exp(-numbers.decay_rates[head] * step);
      for (int64_t c = head * dim; c < (head + 1) * dim; ++c) kept.values[c] = step * x[c];
    }
  }
}

// The products of every `stride`-th C of a piece, from `first` on, with the keys up to it.
void MultiplyKeysOfGroup(const Exec& exec, const MatrixStateShape& shape,
                         const Mamba2Scratch& scratch, const StatePiece& piece, int64_t group,
                         int64_t first, int64_t stride) {
  const int64_t slot = std::ssize(piece.kept) - piece.rows, at = group * shape.key_dim;
  std::array<const float*, kTileTokens> keys;
  for (size_t j = 0; j < piece.kept.size(); ++j) {
    keys[j] = MatrixRow(shape, piece.kept[j]).keys + at;
  }
  for (int64_t i = first; i < piece.rows; i += stride) {
    const int64_t row = piece.first_row + i;
    const float* const c = scratch.mixed.Row(row) + shape.values() + shape.keys() + at;
    exec.kernels.dot_rows(c, keys.data(), slot + i + 1, shape.key_dim,
                          scratch.dots.Row(row) + group * kTileTokens);
  }
}

// Columns [first, last) of a head in one piece after another.
class Mamba2Head : MatrixHead {
 public:
  Mamba2Head(const Exec& exec, const MatrixStateShape& shape, const Mamba2Scratch& scratch,
             float skip, int worker, int64_t head, int64_t first, int64_t last)
      : MatrixHead(exec, shape, scratch.heads, worker, head, first, last),
        scratch_(scratch),
        skip_(skip) {}

  void Run(const StatePiece& piece, MatrixView<float> out) {
    const int64_t slot = std::ssize(piece.kept) - piece.rows;
    for (int64_t i = 0; i < piece.rows; ++i) {
      weights_[i] =
          scratch_.mixed.Row(piece.first_row + i) + shape_.values() + shape_.keys() + key_place();
    }
    MultiplyState(piece, piece.rows);
    for (int64_t j = 0; j < std::ssize(piece.kept); ++j) from_[j] = Values(piece, j);
    for (int64_t i = 0; i < piece.rows; i += kRowsTogether) {
      RunRows(piece, slot + i, i, std::min(kRowsTogether, piece.rows - i), out);
    }
    if (piece.end != nullptr) WriteState(piece);
  }

 private:
  // Positions [slot, slot + n) of the tile, rows [first, first + n) of the piece. A row's sum is
  // one chain over the tile: over the positions before `slot` together with the other rows, then
  // over the rest.
  void RunRows(const StatePiece& piece, int64_t slot, int64_t first, int64_t n,
               MatrixView<float> out) {
    std::array<std::array<float, kTileTokens>, kRowsTogether> weights;
    for (int64_t i = 0; i < n; ++i) {
      const float decay = FindDecays(piece, slot + i);
      const float* const dots =
          scratch_.dots.Row(piece.first_row + first + i) + key_head_ * kTileTokens;
      for (int64_t j = 0; j <= slot + i; ++j) weights[i][j] = decays_[j] * dots[j];
      float* const product = products_.Row(first + i);
      for (int64_t c = 0; c < columns_; ++c) product[c] *= decay;
      weights_[i] = weights[i].data();
      outs_[i] = product;
    }
    AddRows(n, slot);
    for (int64_t i = 0; i < n; ++i) {
      weights_[0] = weights[i].data() + slot;
      outs_[0] = products_.Row(first + i);
      AddRows(1, i + 1, slot);
      const int64_t row = piece.first_row + first + i;
      const float* const x = scratch_.mixed.Row(row) + first_;
      float* const to = out.Row(row) + first_;
      for (int64_t c = 0; c < columns_; ++c) to[c] = outs_[0][c] + skip_ * x[c];
    }
  }

  const Mamba2Scratch& scratch_;
  const float skip_;
};

// Keeps the columns [first, last) of a piece's keys.
void KeepKeys(const MatrixStateShape& shape, const Mamba2Scratch& scratch, const StatePiece& piece,
              int64_t first, int64_t last) {
  const int64_t slot = std::ssize(piece.kept) - piece.rows;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const float* const b = scratch.mixed.Row(piece.first_row + i) + shape.values();
    std::copy(b + first, b + last, MatrixRow(shape, piece.kept[slot + i]).keys + first);
  }
}

}  // namespace

void Mamba2(const Exec& exec, const MatrixStateShape& shape, const Mamba2Numbers& numbers,
            std::span<const StatePiece> pieces, MatrixView<const float> in,
            MatrixView<const float> steps, MatrixView<float> out) {
  constexpr int64_t kColumns = 256;  // of a task
  const int64_t convolved = shape.convolved(), heads = shape.value_heads;
  assert(in.rows == out.rows && in.cols == convolved && out.cols == shape.values());
  assert(steps.rows == in.rows && steps.cols == heads && heads % shape.key_heads == 0);
  assert(0 < shape.taps && shape.taps <= kMaxConvolutionTaps);
  assert(numbers.taps.rows == shape.taps && numbers.taps.cols == convolved);
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  Workspace::Scope scope(exec.workspace);
  Workspace& workspace = exec.workspace;
  const Mamba2Scratch scratch = {
      .mixed = workspace.Matrix<float>(in.rows, convolved),
      .dots = workspace.Matrix<float>(in.rows, shape.key_heads * kTileTokens),
      .heads = NewMatrixScratch(exec, shape, /*products=*/kTileTokens)};
  const int64_t parts = PartsOfHead(exec, shape);
  const int64_t strides = std::clamp<int64_t>(exec.pool.threads() / shape.key_heads, 1, 16);
  while (!pieces.empty()) {
    const auto round = pieces.first(PiecesOfRound(pieces));
    exec.Parallel((convolved + kColumns - 1) / kColumns, [&](int64_t task) {
      const int64_t first = task * kColumns, last = std::min(convolved, first + kColumns);
      for (const StatePiece& piece : round) {
        ConvolveInputs(exec, shape, numbers.taps, numbers.bias, piece, in, scratch.mixed, first,
                       last);
        const int64_t key = std::max<int64_t>(0, first - shape.values());
        const int64_t end = std::min(shape.keys(), last - shape.values());
        if (key < end) KeepKeys(shape, scratch, piece, key, end);
      }
    });
    // The first tasks multiply keys, the others make values.
    const int64_t products = shape.key_heads * strides;
    exec.Parallel(products + heads, [&](int64_t task) {
      for (const StatePiece& piece : round) {
        if (task < products) {
          MultiplyKeysOfGroup(exec, shape, scratch, piece, task / strides, task % strides, strides);
        } else {
          const int64_t head = task - products;
          PrepareValues(shape, numbers, scratch, piece, steps, head, head + 1);
        }
      }
    });
    exec.Parallel(heads * parts, [&](int64_t task, int worker) {
      const int64_t part = task % parts, head = task / parts;
      Mamba2Head runner(exec, shape, scratch, numbers.skips[head], worker, head,
                        shape.value_dim * part / parts, shape.value_dim * (part + 1) / parts);
      for (const StatePiece& piece : round) runner.Run(piece, out);
    });
    pieces = pieces.subspan(round.size());
  }
}

}  // namespace godwit::ops
