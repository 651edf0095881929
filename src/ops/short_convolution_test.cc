#include "ops/short_convolution.h"

#include <array>
#include <vector>

#include "kernels/kernel_table.h"
#include "ops/test_support.h"

namespace godwit::ops::short_convolution_test {
namespace {

using kernels::kTileTokens;

// One text in one layer, cut into pieces by hand: rows of the tile, and states.
class Text {
 public:
  Text(int64_t width, int64_t taps) : width_(width), begin_((taps - 1) * width), end_(begin_) {
    for (auto& row : rows_) row.resize(width);
  }

  // Reads rows in steps of `chunk`, and returns the results, row after row.
  std::vector<float> Read(const ConvolutionWeights& weights, const GappedMatrix& in, int64_t chunk,
                          int threads = 1) {
    ThreadPool pool(threads);
    Workspace workspace;
    const Exec exec{.pool = pool, .kernels = *IsaPointers().back()->table, .workspace = workspace};
    std::vector<float> results;
    const int64_t rows = in.view().rows;
    for (int64_t at = 0; at < rows; at += chunk) {
      const int64_t n = std::min(chunk, rows - at);
      GappedMatrix out(n, width_);
      const auto pieces = Pieces(n);
      ShortConvolution(exec, weights, pieces, in.view().Rows(at, at + n), out.view());
      for (int64_t row = 0; row < n; ++row) {
        const auto of_row = out.Row(row);
        results.insert(results.end(), of_row.begin(), of_row.end());
      }
      EXPECT_TRUE(out.GapsIntact());
      length_ += n;
      if (std::ssize(pieces) > 1 || length_ % kTileTokens == 0) begin_ = end_;
    }
    return results;
  }

 private:
  // All tiles of a step lie in the same rows, and states behind the first one in the same place.
  std::vector<StatePiece> Pieces(int64_t n) {
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
           .kept = std::span(kept_).first(slot + rows),
           .end = slot + rows == kTileTokens ? end_.data() : nullptr});
      at += rows;
    }
    return pieces;
  }

  int64_t width_;
  int64_t length_ = 0;
  std::array<std::vector<float>, kTileTokens> rows_;
  std::vector<float*> kept_;
  std::vector<float> begin_, end_;
};

// In double, over the whole text at once.
TEST(ShortConvolution, IsTheSumOverTheLastPositions) {
  for (const int64_t taps : {1, 3, 4, 65}) {
    const int64_t width = 5, rows = 150;
    const GappedMatrix in(rows, 3 * width, 1), filter(taps, width, 2), bias(1, width, 3);
    for (const bool has_bias : {false, true}) {
      const ConvolutionWeights weights{.taps = filter.view(),
                                       .bias = has_bias
                                                   ? std::span<const float>(bias.view().RowSpan(0))
                                                   : std::span<const float>()};
      const auto found = Text(width, taps).Read(weights, in, rows);
      for (int64_t row = 0; row < rows; ++row) {
        for (int64_t c = 0; c < width; ++c) {
          double sum = has_bias ? bias.At(0, c) : 0;
          for (int64_t j = 0; j < taps; ++j) {
            const int64_t at = row - taps + 1 + j;
            if (at < 0) continue;
            sum += double{filter.At(j, c)} * in.At(at, c) * in.At(at, 2 * width + c);
          }
          ASSERT_NEAR(found[row * width + c], in.At(row, width + c) * sum, 1e-4) << row;
        }
      }
    }
  }
}

TEST(ShortConvolution, ChunksAndThreadsChangeNoBits) {
  const int64_t width = 600;
  const GappedMatrix in(230, 3 * width, 1), filter(3, width, 2);
  const ConvolutionWeights weights{.taps = filter.view(), .bias = {}};
  const auto one_by_one = Text(width, 3).Read(weights, in, 1);
  for (const int64_t chunk : {2, 7, 63, 64, 65, 128, 230}) {
    EXPECT_EQ(Text(width, 3).Read(weights, in, chunk, 3), one_by_one) << chunk;
  }
}

}  // namespace
}  // namespace godwit::ops::short_convolution_test
