#include "ops/gated_delta_net.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kernels/kernel_table.h"
#include "kernels/short_convolution.h"
#include "ops/profile.h"
#include "ops/short_convolution.h"

namespace godwit::ops {
namespace {

using kernels::kTileTokens;

// Added to the square of a length before it divides, as in the published models.
constexpr float kLengthEpsilon = 1e-6f;

// The kept row of a position, in parts.
struct KeptRow {
  KeptRow(const DeltaNetShape& shape, float* row)
      : inputs(row),
        keys(inputs + shape.convolved()),
        corrected(keys + shape.keys()),
        decays(corrected + shape.values()) {}

  float* inputs;     // [convolved]
  float* keys;       // [keys], of length 1
  float* corrected;  // [values]: u
  float* decays;     // [value_heads]: a
};

// Scratch memory of a step.
struct DeltaNetScratch {
  MatrixView<float> mixed;  // [rows, convolved]: q, k and v behind the convolution
  MatrixView<float> betas;  // [rows, value_heads]
  // [rows, key_heads * 2 * kTileTokens]: for each key head k[t] . k[j], then q[t] . k[j]
  MatrixView<float> dots;
  MatrixView<float> gains;     // [2, key_dim]: what q and k are multiplied by behind their norms
  MatrixView<float> products;  // [threads * 2 * kTileTokens, value_dim]
  MatrixView<float> weights;   // [threads, key_dim * kTileTokens]
  MatrixView<const float*> places;  // [threads, ...]: see HeadScratch
  MatrixView<float*> outs;
};

// Columns [first, last) of a piece behind the convolution and SiLU. Keeps its inputs.
void ConvolveInputs(const Exec& exec, const DeltaNetShape& shape, const DeltaNetWeights& weights,
                    const StatePiece& piece, MatrixView<const float> in, MatrixView<float> mixed,
                    int64_t first, int64_t last) {
  const int64_t width = shape.convolved(), count = shape.taps, before = count - 1;
  const int64_t slot = std::ssize(piece.kept) - piece.rows;  // of the piece's first row
  const int64_t states = shape.value_heads * shape.head_state();
  std::array<const float*, kMaxConvolutionTaps> rows;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const float* const row = in.Row(piece.first_row + i);
    float* const out = mixed.Row(piece.first_row + i);
    std::copy(row + first, row + last, piece.kept[slot + i] + first);
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = slot + i - before + j;  // in the tile, or before it
      rows[j] = at >= 0 ? piece.kept[at] : piece.begin + states + (at + before) * width;
    }
    kernels::ShortConvolution({.taps = weights.taps.data,
                               .width = weights.taps.stride,
                               .bias = nullptr,
                               .rows = rows.data(),
                               .count = count,
                               .gate = nullptr,
                               .first = first,
                               .last = last,
                               .out = out});
    exec.kernels.silu(out + first, last - first, out + first);
  }
  if (piece.end == nullptr) return;
  for (int64_t j = 0; j < before; ++j) {
    const float* const kept = piece.kept[kTileTokens - before + j];
    std::copy(kept + first, kept + last, piece.end + states + j * width + first);
  }
}

float Softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// Normalises a piece's queries and keys of a key head. Computes their products with the keys before
// and at each.
void PrepareKeys(const Exec& exec, const DeltaNetShape& shape, const DeltaNetScratch& scratch,
                 const StatePiece& piece, int64_t head) {
  const int64_t dim = shape.key_dim, at = head * dim;
  const int64_t slot = std::ssize(piece.kept) - piece.rows;
  const float epsilon = kLengthEpsilon / static_cast<float>(dim);  // of a mean
  std::array<float*, kTileTokens> keys;
  for (size_t j = 0; j < piece.kept.size(); ++j) keys[j] = KeptRow(shape, piece.kept[j]).keys + at;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const int64_t row = piece.first_row + i;
    float* const q = scratch.mixed.Row(row) + at;
    float* const dots = scratch.dots.Row(row) + head * 2 * kTileTokens;
    exec.kernels.rms_norm(q, scratch.gains.Row(0), epsilon, dim, q);
    exec.kernels.rms_norm(q + shape.keys(), scratch.gains.Row(1), epsilon, dim, keys[slot + i]);
    exec.kernels.dot_rows(keys[slot + i], keys.data(), slot + i, dim, dots);
    exec.kernels.dot_rows(q, keys.data(), slot + i + 1, dim, dots + kTileTokens);
  }
}

// The gates of a piece's value heads that belong to a key head.
void PrepareGates(const DeltaNetShape& shape, const DeltaNetWeights& weights,
                  const DeltaNetScratch& scratch, const StatePiece& piece,
                  MatrixView<const float> gates, int64_t key_head) {
  const int64_t slot = std::ssize(piece.kept) - piece.rows;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const int64_t row = piece.first_row + i;
    const float* const updates = gates.Row(row);
    const float* const steps = updates + shape.value_heads;
    float* const decays = KeptRow(shape, piece.kept[slot + i]).decays;
    for (int64_t j = 0; j < shape.group(); ++j) {
      const int64_t head = shape.ValueHeadOf(key_head, j);
      const float step = Softplus(steps[head] + weights.decay_biases[head]);
      scratch.betas.Row(row)[head] = 1 / (1 + std::exp(-updates[head]));
      decays[head] = std::exp(-weights.decay_rates[head] * step);
    }
  }
}

// Columns [first, last) of a value head in one piece after another.
class DeltaHead {
 public:
  DeltaHead(const Exec& exec, const DeltaNetShape& shape, const DeltaNetScratch& scratch,
            int worker, int64_t head, int64_t first, int64_t last)
      : exec_(exec),
        shape_(shape),
        scratch_(scratch),
        head_(head),
        key_head_(shape.KeyHeadOf(head)),
        first_(head * shape.value_dim + first),
        columns_(last - first),
        state_(head * shape.head_state() + first),
        products_(scratch.products.Rows(2 * kTileTokens * worker, 2 * kTileTokens * (worker + 1))),
        transposed_(scratch.weights.Row(worker)),
        weights_(scratch.places.Row(2 * worker)),
        from_(scratch.places.Row(2 * worker + 1)),
        outs_(scratch.outs.Row(worker)) {}

  void Run(const StatePiece& piece, MatrixView<float> out) {
    MultiplyState(piece);
    const int64_t slot = std::ssize(piece.kept) - piece.rows;
    for (int64_t j = 0; j < slot; ++j) corrected_[j] = Corrected(piece, j);
    for (int64_t i = 0; i < piece.rows; ++i) RunRow(piece, slot + i, i, out);
    if (piece.end != nullptr) WriteState(piece);
  }

 private:
  float* Corrected(const StatePiece& piece, int64_t slot) const {
    return KeptRow(shape_, piece.kept[slot]).corrected + first_;
  }

  // products = k S and q S of each row, two rows for a row.
  void MultiplyState(const StatePiece& piece) {
    const int64_t slot = std::ssize(piece.kept) - piece.rows, at = key_head_ * shape_.key_dim;
    for (int64_t d = 0; d < shape_.key_dim; ++d) {
      from_[d] = piece.begin + state_ + d * shape_.value_dim;
    }
    for (int64_t i = 0; i < piece.rows; ++i) {
      weights_[2 * i] = KeptRow(shape_, piece.kept[slot + i]).keys + at;
      weights_[2 * i + 1] = scratch_.mixed.Row(piece.first_row + i) + at;
    }
    for (int64_t i = 0; i < 2 * piece.rows; ++i) {
      outs_[i] = products_.Row(i);
      std::fill_n(outs_[i], columns_, 0.0f);
    }
    AddRows(2 * piece.rows, shape_.key_dim);
  }

  void AddRows(int64_t rows, int64_t count) const {
    exec_.kernels.add_weighted_rows({.weights = weights_,
                                     .from = from_,
                                     .out = outs_,
                                     .rows = rows,
                                     .count = count,
                                     .columns = columns_});
  }

  // decays_[j] = A(slot, j). Returns the decay of the state at the tile's beginning.
  float FindDecays(const StatePiece& piece, int64_t slot) {
    float decay = 1;
    for (int64_t j = slot; j >= 0; --j) {
      decays_[j] = decay;
      decay *= KeptRow(shape_, piece.kept[j]).decays[head_];
    }
    return decay;
  }

  // The position at `slot` of the tile, row `i` of the piece.
  void RunRow(const StatePiece& piece, int64_t slot, int64_t i, MatrixView<float> out) {
    const int64_t row = piece.first_row + i;
    const float decay = FindDecays(piece, slot);
    const float* const of_keys = scratch_.dots.Row(row) + key_head_ * 2 * kTileTokens;
    const float* const of_queries = of_keys + kTileTokens;
    std::array<float, kTileTokens> key_weights, query_weights;
    for (int64_t j = 0; j < slot; ++j) {
      key_weights[j] = decays_[j] * of_keys[j];
      query_weights[j] = decays_[j] * of_queries[j];
      from_[j] = corrected_[j];
    }
    float* const known = products_.Row(2 * i);
    float* const result = products_.Row(2 * i + 1);
    for (int64_t c = 0; c < columns_; ++c) known[c] *= decay;
    for (int64_t c = 0; c < columns_; ++c) result[c] *= decay;
    weights_[0] = key_weights.data();
    weights_[1] = query_weights.data();
    outs_[0] = known;
    outs_[1] = result;
    AddRows(2, slot);
    const float* const v = scratch_.mixed.Row(row) + 2 * shape_.keys() + first_;
    const float beta = scratch_.betas.Row(row)[head_], own = of_queries[slot];
    float* const corrected = Corrected(piece, slot);
    float* const to = out.Row(row) + first_;
    for (int64_t c = 0; c < columns_; ++c) corrected[c] = beta * (v[c] - known[c]);
    for (int64_t c = 0; c < columns_; ++c) to[c] = result[c] + own * corrected[c];
    corrected_[slot] = corrected;
  }

  // The state behind the tile. decays_ are those of its last position.
  void WriteState(const StatePiece& piece) {
    const int64_t at = key_head_ * shape_.key_dim;
    const float decay = FindDecays(piece, kTileTokens - 1);
    for (int64_t j = 0; j < kTileTokens; ++j) {
      const float* const key = KeptRow(shape_, piece.kept[j]).keys + at;
      for (int64_t d = 0; d < shape_.key_dim; ++d) {
        transposed_[d * kTileTokens + j] = decays_[j] * key[d];
      }
      from_[j] = corrected_[j];
    }
    for (int64_t d = 0; d < shape_.key_dim; ++d) {
      const float* const begin = piece.begin + state_ + d * shape_.value_dim;
      float* const end = piece.end + state_ + d * shape_.value_dim;
      for (int64_t c = 0; c < columns_; ++c) end[c] = decay * begin[c];
      weights_[d] = transposed_ + d * kTileTokens;
      outs_[d] = end;
    }
    AddRows(shape_.key_dim, kTileTokens);
  }

  const Exec& exec_;
  const DeltaNetShape& shape_;
  const DeltaNetScratch& scratch_;
  const int64_t head_, key_head_;
  const int64_t first_, columns_;  // of all value heads' columns
  const int64_t state_;            // the place of the columns in a state
  const MatrixView<float> products_;
  float* const transposed_;      // [key_dim, kTileTokens]
  const float** const weights_;  // arguments of the kernel
  const float** const from_;
  float** const outs_;
  std::array<float, kTileTokens> decays_;
  std::array<const float*, kTileTokens> corrected_;
};

DeltaNetScratch NewScratch(const Exec& exec, const DeltaNetShape& shape, int64_t rows) {
  const int64_t threads = exec.pool.threads();
  const int64_t places = std::max(2 * kTileTokens, shape.key_dim);
  Workspace& workspace = exec.workspace;
  return {.mixed = workspace.Matrix<float>(rows, shape.convolved()),
          .betas = workspace.Matrix<float>(rows, shape.value_heads),
          .dots = workspace.Matrix<float>(rows, shape.key_heads * 2 * kTileTokens),
          .gains = workspace.Matrix<float>(2, shape.key_dim),
          .products = workspace.Matrix<float>(threads * 2 * kTileTokens, shape.value_dim),
          .weights = workspace.Matrix<float>(threads, shape.key_dim * kTileTokens),
          .places = workspace.Matrix<const float*>(2 * threads, places),
          .outs = workspace.Matrix<float*>(threads, places)};
}

// The parts into which columns of a value head are cut, so that every thread has work.
int64_t PartsOfHead(const Exec& exec, const DeltaNetShape& shape) {
  constexpr int64_t kColumns = 32;  // at least
  const int64_t most = std::max<int64_t>(1, shape.value_dim / kColumns);
  return std::clamp<int64_t>(2 * exec.pool.threads() / shape.value_heads, 1, most);
}

// The number of first pieces that write no row which an earlier one of them reads. Tiles of a long
// chunk that will not be kept lie in the same memory, one after another.
size_t PiecesOfRound(std::span<const StatePiece> pieces) {
  size_t count = 1;
  for (; count < pieces.size(); ++count) {
    const StatePiece& next = pieces[count];
    const float* const row = next.kept[next.kept.size() - static_cast<size_t>(next.rows)];
    const bool taken = std::ranges::any_of(pieces.first(count), [&](const StatePiece& earlier) {
      return std::ranges::find(earlier.kept, row) != earlier.kept.end();
    });
    if (taken) break;
  }
  return count;
}

}  // namespace

void GatedDeltaNet(const Exec& exec, const DeltaNetShape& shape, const DeltaNetWeights& weights,
                   std::span<const StatePiece> pieces, MatrixView<const float> in,
                   MatrixView<const float> gates, MatrixView<float> out) {
  [[maybe_unused]] const int64_t convolved = shape.convolved();
  assert(in.rows == out.rows && in.cols == convolved && out.cols == shape.values());
  assert(gates.rows == in.rows && gates.cols == 2 * shape.value_heads);
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
          ConvolveInputs(exec, shape, weights, piece, in, scratch.mixed, first, first + columns);
        };
        convolve(q, shape.key_dim);
        convolve(k, shape.key_dim);
        for (int64_t i = 0; i < shape.group(); ++i) {
          convolve(2 * shape.keys() + shape.ValueHeadOf(head, i) * shape.value_dim,
                   shape.value_dim);
        }
        PrepareKeys(exec, shape, scratch, piece, head);
        PrepareGates(shape, weights, scratch, piece, gates, head);
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
