#include "ops/gated_delta_net.h"

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

// Added to the square of a length before it divides, as in the published models.
constexpr float kLengthEpsilon = 1e-6f;

// Scratch memory of a step.
struct DeltaNetScratch {
  // [rows, convolved]: q, k and v behind the convolution. With decays of channels, q and k end up
  // decayed from the tile's beginning.
  MatrixView<float> mixed;
  MatrixView<float> betas;  // [rows, value_heads]
  // [rows, key_heads * 2 * kTileTokens]: for each key head k[t] . k[j], then q[t] . k[j]
  MatrixView<float> dots;
  MatrixView<float> gains;  // [2, key_dim]: what q and k are multiplied by behind their norms
  MatrixScratch heads;
};

// Normalises a piece's queries and keys of a key head. Computes their products with the keys before
// and at each. With decays of channels, which are known, the products contain them.
void PrepareKeys(const Exec& exec, const DeltaNetShape& shape, const DeltaNetScratch& scratch,
                 const StatePiece& piece, int64_t head) {
  const int64_t dim = shape.key_dim, at = head * dim;
  const int64_t slot = std::ssize(piece.kept) - piece.rows;
  const float epsilon = kLengthEpsilon / static_cast<float>(dim);  // of a mean
  std::array<float*, kTileTokens> keys, decays;
  for (size_t j = 0; j < piece.kept.size(); ++j) {
    const MatrixRow row(shape, piece.kept[j]);
    keys[j] = row.keys + at;
    decays[j] = shape.channel_decays ? row.decays + at : nullptr;
  }
  for (int64_t i = 0; i < piece.rows; ++i) {
    const int64_t row = piece.first_row + i;
    float* const q = scratch.mixed.Row(row) + at;
    float* const dots = scratch.dots.Row(row) + head * 2 * kTileTokens;
    exec.kernels.rms_norm(q, scratch.gains.Row(0), epsilon, dim, q);
    float* const k = q + shape.keys();
    exec.kernels.rms_norm(k, scratch.gains.Row(1), epsilon, dim, keys[slot + i]);
    if (shape.channel_decays) {
      std::copy_n(keys[slot + i], dim, k);
      exec.kernels.dot_decayed_rows({.x = k,
                                     .y = q,
                                     .rows = keys.data(),
                                     .decays = decays.data(),
                                     .x_dots = dots,
                                     .y_dots = dots + kTileTokens,
                                     .count = slot + i + 1,
                                     .n = dim});
      continue;
    }
    exec.kernels.dot_rows(keys[slot + i], keys.data(), slot + i, dim, dots);
    exec.kernels.dot_rows(q, keys.data(), slot + i + 1, dim, dots + kTileTokens);
  }
}

// The gates of a piece's value heads that belong to a key head.
void PrepareGates(const Exec& exec, const DeltaNetShape& shape, const DeltaNetWeights& weights,
                  const DeltaNetScratch& scratch, const StatePiece& piece,
                  MatrixView<const float> gates, int64_t key_head) {
  const int64_t slot = std::ssize(piece.kept) - piece.rows;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const int64_t row = piece.first_row + i;
    const float* const updates = gates.Row(row);
    const float* const steps = updates + shape.value_heads;
    float* const decays = MatrixRow(shape, piece.kept[slot + i]).decays;
    for (int64_t j = 0; j < shape.group(); ++j) {
      const int64_t head = shape.ValueHeadOf(key_head, j);
      scratch.betas.Row(row)[head] = weights.update_scale / (1 + std::exp(-updates[head]));
      if (shape.channel_decays) {
        const int64_t at = key_head * shape.key_dim;
        exec.kernels.decays(steps + at, &weights.decay_biases[at], weights.decay_rates[head],
                            shape.key_dim, decays + at);
        continue;
      }
      const float step = Softplus(steps[head] + weights.decay_biases[head]);
      decays[head] = std::exp(-weights.decay_rates[head] * step);
    }
  }
}

// Columns [first, last) of a value head in one piece after another.
class DeltaHead : MatrixHead {
 public:
  DeltaHead(const Exec& exec, const DeltaNetShape& shape, const DeltaNetScratch& scratch,
            int worker, int64_t head, int64_t first, int64_t last)
      : MatrixHead(exec, shape, scratch.heads, worker, head, first, last), scratch_(scratch) {}

  void Run(const StatePiece& piece, MatrixView<float> out) {
    MultiplyKeysAndQueries(piece);
    const int64_t slot = std::ssize(piece.kept) - piece.rows;
    for (int64_t j = 0; j < std::ssize(piece.kept); ++j) from_[j] = Values(piece, j);
    for (int64_t i = 0; i < piece.rows; ++i) RunRow(piece, slot + i, i, out);
    if (piece.end != nullptr) WriteState(piece);
  }

 private:
  // products = k S and q S of each row, two rows for a row.
  void MultiplyKeysAndQueries(const StatePiece& piece) {
    const int64_t slot = std::ssize(piece.kept) - piece.rows;
    for (int64_t i = 0; i < piece.rows; ++i) {
      const float* const queries = scratch_.mixed.Row(piece.first_row + i);
      const float* const keys = shape_.channel_decays
                                    ? queries + shape_.keys()
                                    : MatrixRow(shape_, piece.kept[slot + i]).keys;
      weights_[2 * i] = keys + key_place();
      weights_[2 * i + 1] = queries + key_place();
    }
    MultiplyState(piece, 2 * piece.rows);
  }

  // The position at `slot` of the tile, row `i` of the piece.
  void RunRow(const StatePiece& piece, int64_t slot, int64_t i, MatrixView<float> out) {
    const int64_t row = piece.first_row + i;
    const float* const of_keys = scratch_.dots.Row(row) + key_head_ * 2 * kTileTokens;
    const float* const of_queries = of_keys + kTileTokens;
    float* const known = products_.Row(2 * i);
    float* const result = products_.Row(2 * i + 1);
    weights_[0] = of_keys;
    weights_[1] = of_queries;
    std::array<float, kTileTokens> key_weights, query_weights;
    if (!shape_.channel_decays) {
      const float decay = FindDecays(piece, slot);
      for (int64_t j = 0; j < slot; ++j) {
        key_weights[j] = decays_[j] * of_keys[j];
        query_weights[j] = decays_[j] * of_queries[j];
      }
      for (int64_t c = 0; c < columns_; ++c) known[c] *= decay;
      for (int64_t c = 0; c < columns_; ++c) result[c] *= decay;
      weights_[0] = key_weights.data();
      weights_[1] = query_weights.data();
    }
    outs_[0] = known;
    outs_[1] = result;
    AddRows(2, slot);
    const float* const v = scratch_.mixed.Row(row) + 2 * shape_.keys() + first_;
    const float beta = scratch_.betas.Row(row)[head_], own = of_queries[slot];
    float* const corrected = Values(piece, slot);
    float* const to = out.Row(row) + first_;
    for (int64_t c = 0; c < columns_; ++c) corrected[c] = beta * (v[c] - known[c]);
    for (int64_t c = 0; c < columns_; ++c) to[c] = result[c] + own * corrected[c];
  }

  const DeltaNetScratch& scratch_;
};

DeltaNetScratch NewScratch(const Exec& exec, const DeltaNetShape& shape, int64_t rows) {
  Workspace& workspace = exec.workspace;
  return {.mixed = workspace.Matrix<float>(rows, shape.convolved()),
          .betas = workspace.Matrix<float>(rows, shape.value_heads),
          .dots = workspace.Matrix<float>(rows, shape.key_heads * 2 * kTileTokens),
          .gains = workspace.Matrix<float>(2, shape.key_dim),
          .heads = NewMatrixScratch(exec, shape, /*products=*/2 * kTileTokens)};
}

}  // namespace

void GatedDeltaNet(const Exec& exec, const DeltaNetShape& shape, const DeltaNetWeights& weights,
                   std::span<const StatePiece> pieces, MatrixView<const float> in,
                   MatrixView<const float> gates, MatrixView<float> out) {
  [[maybe_unused]] const int64_t convolved = shape.convolved();
  assert(in.rows == out.rows && in.cols == convolved && out.cols == shape.values());
  assert(gates.rows == in.rows && gates.cols == shape.value_heads + shape.decays());
  assert(!shape.channel_decays || shape.value_heads == shape.key_heads);
  assert(shape.value_heads % shape.key_heads == 0);
  assert(0 < shape.taps && shape.taps <= kMaxConvolutionTaps);
  assert(weights.taps.rows == shape.taps && weights.taps.cols == convolved);
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  Workspace::Scope scope(exec.workspace);
  const DeltaNetScratch scratch = NewScratch(exec, shape, in.rows);
  const float root = std::sqrt(static_cast<float>(shape.key_dim));
  std::fill_n(scratch.gains.Row(0), shape.key_dim, 1 / static_cast<float>(shape.key_dim));
  std::fill_n(scratch.gains.Row(1), shape.key_dim, 1 / root);
  const int64_t parts = PartsOfHead(exec, shape);
  while (!pieces.empty()) {
    const auto round = pieces.first(PiecesOfRound(pieces));
    exec.Parallel(shape.key_heads, [&](int64_t head) {
      const int64_t q = head * shape.key_dim, k = shape.keys() + q;
      for (const StatePiece& piece : round) {
        const auto convolve = [&](int64_t first, int64_t columns) {
          ConvolveInputs(exec, shape, weights.taps, /*bias=*/{}, piece, in, scratch.mixed, first,
                         first + columns);
        };
        convolve(q, shape.key_dim);
        convolve(k, shape.key_dim);
        for (int64_t i = 0; i < shape.group(); ++i) {
          convolve(2 * shape.keys() + shape.ValueHeadOf(head, i) * shape.value_dim,
                   shape.value_dim);
        }
        PrepareGates(exec, shape, weights, scratch, piece, gates, head);
        PrepareKeys(exec, shape, scratch, piece, head);
      }
    });
    exec.Parallel(shape.value_heads * parts, [&](int64_t task, int worker) {
      const int64_t part = task % parts;
      DeltaHead head(exec, shape, scratch, worker, task / parts, shape.value_dim * part / parts,
                     shape.value_dim * (part + 1) / parts);
      for (const StatePiece& piece : round) head.Run(piece, out);
    });
    pieces = pieces.subspan(round.size());
  }
}

}  // namespace godwit::ops
