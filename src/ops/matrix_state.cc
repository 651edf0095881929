#include "ops/matrix_state.h"

#include <algorithm>
#include <cmath>

#include "kernels/short_convolution.h"
#include "ops/kept_inputs.h"

namespace godwit::ops {

using kernels::kTileTokens;

void ConvolveInputs(const Exec& exec, const MatrixStateShape& shape, MatrixView<const float> taps,
                    std::span<const float> bias, const StatePiece& piece,
                    MatrixView<const float> in, MatrixView<float> out, int64_t first,
                    int64_t last) {
  const int64_t width = shape.convolved();
  const int64_t slot = std::ssize(piece.kept) - piece.rows;  // of the piece's first row
  std::array<const float*, kMaxConvolutionTaps> rows;
  for (int64_t i = 0; i < piece.rows; ++i) {
    const float* const row = in.Row(piece.first_row + i);
    float* const to = out.Row(piece.first_row + i);
    std::copy(row + first, row + last, piece.kept[slot + i] + first);
    FindInputs(piece, i, shape.taps, piece.begin + shape.head_states(), width, rows.data());
    kernels::ShortConvolution({.taps = taps.data,
                               .width = taps.stride,
                               .bias = bias.empty() ? nullptr : bias.data(),
                               .rows = rows.data(),
                               .count = shape.taps,
                               .gate = nullptr,
                               .first = first,
                               .last = last,
                               .out = to});
    exec.kernels.silu(to + first, last - first, to + first);
  }
  if (piece.end == nullptr) return;
  KeepLastInputs(piece, shape.taps, width, first, last, piece.end + shape.head_states());
}

float Softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }

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

int64_t PartsOfHead(const Exec& exec, const MatrixStateShape& shape) {
  constexpr int64_t kColumns = 32;  // at least
  const int64_t most = std::max<int64_t>(1, shape.value_dim / kColumns);
  return std::clamp<int64_t>(2 * exec.pool.threads() / shape.value_heads, 1, most);
}

MatrixScratch NewMatrixScratch(const Exec& exec, const MatrixStateShape& shape, int64_t products) {
  const int64_t threads = exec.pool.threads();
  const int64_t places = std::max({products, kTileTokens, shape.key_dim});
  Workspace& workspace = exec.workspace;
  return {.products = workspace.Matrix<float>(threads * products, shape.value_dim),
          .weights = workspace.Matrix<float>(threads, shape.key_dim * (kTileTokens + 1)),
          .places = workspace.Matrix<const float*>(2 * threads, places),
          .outs = workspace.Matrix<float*>(threads, places)};
}

MatrixHead::MatrixHead(const Exec& exec, const MatrixStateShape& shape,
                       const MatrixScratch& scratch, int worker, int64_t head, int64_t first,
                       int64_t last)
    : exec_(exec),
      shape_(shape),
      head_(head),
      key_head_(shape.KeyHeadOf(head)),
      first_(head * shape.value_dim + first),
      columns_(last - first),
      state_(head * shape.head_state() + first),
      products_(scratch.products.Rows(scratch.products.rows / scratch.weights.rows * worker,
                                      scratch.products.rows / scratch.weights.rows * (worker + 1))),
      weights_(scratch.places.Row(2 * worker)),
      from_(scratch.places.Row(2 * worker + 1)),
      outs_(scratch.outs.Row(worker)),
      transposed_(scratch.weights.Row(worker)),
      state_decays_(transposed_ + shape.key_dim * kTileTokens) {}

void MatrixHead::MultiplyState(const StatePiece& piece, int64_t rows) {
  for (int64_t d = 0; d < shape_.key_dim; ++d) {
    from_[d] = piece.begin + state_ + d * shape_.value_dim;
  }
  for (int64_t i = 0; i < rows; ++i) {
    outs_[i] = products_.Row(i);
    std::fill_n(outs_[i], columns_, 0.0f);
  }
  AddRows(rows, shape_.key_dim);
}

void MatrixHead::AddRows(int64_t rows, int64_t count, int64_t first) const {
  exec_.kernels.add_weighted_rows({.weights = weights_,
                                   .from = from_ + first,
                                   .out = outs_,
                                   .rows = rows,
                                   .count = count,
                                   .columns = columns_});
}

float MatrixHead::FindDecays(const StatePiece& piece, int64_t slot) {
  float decay = 1;
  for (int64_t j = slot; j >= 0; --j) {
    decays_[j] = decay;
    decay *= MatrixRow(shape_, piece.kept[j]).decays[head_];
  }
  return decay;
}

void MatrixHead::WeighKeys(const StatePiece& piece) {
  std::fill_n(state_decays_, shape_.key_dim, FindDecays(piece, kTileTokens - 1));
  for (int64_t j = 0; j < kTileTokens; ++j) {
    const float* const key = MatrixRow(shape_, piece.kept[j]).keys + key_place();
    for (int64_t d = 0; d < shape_.key_dim; ++d) {
      transposed_[d * kTileTokens + j] = decays_[j] * key[d];
    }
  }
}

void MatrixHead::WeighKeysByChannel(const StatePiece& piece) {
  std::fill_n(state_decays_, shape_.key_dim, 1.0f);
  for (int64_t j = kTileTokens - 1; j >= 0; --j) {
    const MatrixRow row(shape_, piece.kept[j]);
    const float* const key = row.keys + key_place();
    const float* const decays = row.decays + key_place();
    for (int64_t d = 0; d < shape_.key_dim; ++d) {
      transposed_[d * kTileTokens + j] = state_decays_[d] * key[d];
      state_decays_[d] *= decays[d];
    }
  }
}

void MatrixHead::WriteState(const StatePiece& piece) {
  if (shape_.channel_decays) {
    WeighKeysByChannel(piece);
  } else {
    WeighKeys(piece);
  }
  for (int64_t j = 0; j < kTileTokens; ++j) from_[j] = Values(piece, j);
  for (int64_t d = 0; d < shape_.key_dim; ++d) {
    const float* const begin = piece.begin + state_ + d * shape_.value_dim;
    float* const end = piece.end + state_ + d * shape_.value_dim;
    for (int64_t c = 0; c < columns_; ++c) end[c] = state_decays_[d] * begin[c];
    weights_[d] = transposed_ + d * kTileTokens;
    outs_[d] = end;
  }
  AddRows(shape_.key_dim, kTileTokens);
}

}  // namespace godwit::ops
