// One text in one recurrent layer, cut into pieces by hand. Only *_test.cc files include it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/state_piece.h"
#include "ops/test_support.h"

namespace godwit::ops {

// Rows of the tile, and states. The text begins with a state of zeros.
class TextInTiles {
 public:
  // The numbers of a state and of a row.
  TextInTiles(int64_t state_floats, int64_t row_floats)
      : begin_(static_cast<size_t>(state_floats)), end_(begin_) {
    for (auto& row : rows_) row.resize(static_cast<size_t>(row_floats), kNan);
  }

  // Reads `rows` rows in steps of `chunk`: step(exec, pieces, begin, end, out) computes those from
  // `begin` to `end` into out, of `width` columns. Returns the results, row after row.
  template <typename Step>
  std::vector<float> Read(int64_t rows, int64_t width, int64_t chunk, int threads, const Isa& isa,
                          const Step& step) {
    ThreadPool pool(threads);
    Workspace workspace;
    const Exec exec{.pool = pool, .kernels = *isa.table, .workspace = workspace};
    std::vector<float> results;
    for (int64_t at = 0; at < rows; at += chunk) {
      const int64_t n = std::min(chunk, rows - at);
      GappedMatrix out(n, width);
      const auto pieces = Pieces(n);
      step(exec, std::span<const StatePiece>(pieces), at, at + n, out.view());
      EXPECT_TRUE(out.GapsIntact());
      const auto values = out.Values();
      results.insert(results.end(), values.begin(), values.end());
      length_ += n;
      if (std::ssize(pieces) > 1 || length_ % kernels::kTileTokens == 0) begin_ = end_;
    }
    return results;
  }

 private:
  // All tiles of a step lie in the same rows, and states behind the first one in the same place.
  std::vector<StatePiece> Pieces(int64_t n) {
    using kernels::kTileTokens;
    std::vector<StatePiece> pieces;
    kept_.clear();
    for (auto& row : rows_) kept_.push_back(row.data());
    for (int64_t at = length_; at < length_ + n;) {
      const int64_t slot = at % kTileTokens;
      const int64_t rows = std::min(kTileTokens - slot, length_ + n - at);
      pieces.push_back(
          {.first_row = at - length_,
           .rows = rows,
           .begin = at / kTileTokens == length_ / kTileTokens ? begin_.data() : end_.data(),
           .kept = std::span(kept_).first(static_cast<size_t>(slot + rows)),
           .end = slot + rows == kTileTokens ? end_.data() : nullptr});
      at += rows;
    }
    return pieces;
  }

  int64_t length_ = 0;
  std::array<std::vector<float>, kernels::kTileTokens> rows_;
  std::vector<float*> kept_;
  std::vector<float> begin_, end_;
};

// The results of heads whose inputs go through a causal convolution and SiLU, token by token in
// double. in: [rows, channels], taps: [taps, channels], bias: [1, channels], null: none.
// step(row, head, mixed) returns the results of a head.
template <typename Step>
std::vector<double> RunHeads(const GappedMatrix& in, const GappedMatrix& taps,
                             const GappedMatrix* bias, int64_t heads, const Step& step) {
  const int64_t count = taps.view().rows;
  std::vector<double> outputs;
  for (int64_t row = 0; row < in.view().rows; ++row) {
    std::vector<double> mixed;
    for (int64_t c = 0; c < in.view().cols; ++c) {
      double sum = bias == nullptr ? 0 : bias->At(0, c);
      for (int64_t j = std::max<int64_t>(0, count - 1 - row); j < count; ++j) {
        sum += double{taps.At(j, c)} * in.At(row - count + 1 + j, c);
      }
      mixed.push_back(sum / (1 + std::exp(-sum)));
    }
    for (int64_t head = 0; head < heads; ++head) {
      const std::vector<double> of_head = step(row, head, mixed);
      outputs.insert(outputs.end(), of_head.begin(), of_head.end());
    }
  }
  return outputs;
}

}  // namespace godwit::ops
