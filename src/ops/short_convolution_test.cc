#include "ops/short_convolution.h"

#include <array>
#include <vector>

#include "kernels/kernel_table.h"
#include "ops/text_in_tiles_test_support.h"

namespace godwit::ops::short_convolution_test {
namespace {

using kernels::kTileTokens;

// The results of a text that is read in steps of `chunk` rows.
std::vector<float> Read(const ConvolutionWeights& weights, const GappedMatrix& in, int64_t chunk,
                        int threads = 1) {
  const auto step = [&](const Exec& exec, std::span<const StatePiece> pieces, int64_t begin,
                        int64_t end, MatrixView<float> out) {
    ShortConvolution(exec, weights, pieces, in.view().Rows(begin, end), out);
  };
  const int64_t width = weights.taps.cols;
  return TextInTiles((weights.taps.rows - 1) * width, width)
      .Read(in.view().rows, width, chunk, threads, *IsaPointers().back(), step);
}

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
      const auto found = Read(weights, in, rows);
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
  const auto one_by_one = Read(weights, in, 1);
  for (const int64_t chunk : {2, 7, 63, 64, 65, 128, 230}) {
    EXPECT_EQ(Read(weights, in, chunk, 3), one_by_one) << chunk;
  }
}

}  // namespace
}  // namespace godwit::ops::short_convolution_test
