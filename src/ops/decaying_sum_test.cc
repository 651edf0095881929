#include "ops/decaying_sum.h"

#include <array>

#include "kernels/kernel_table.h"
#include "ops/text_in_tiles_test_support.h"

namespace godwit::ops::decaying_sum_test {
namespace {

using kernels::kTileTokens;

// The sums of a text that is read in steps of `chunk` rows.
std::vector<float> Read(float decay, const GappedMatrix& values, int64_t chunk, int threads = 1) {
  const auto step = [&](const Exec& exec, std::span<const StatePiece> pieces, int64_t begin,
                        int64_t end, MatrixView<float> out) {
    DecayingSum(exec, decay, pieces, values.view().Rows(begin, end), out);
  };
  const int64_t width = values.view().cols;
  return TextInTiles(width, width)
      .Read(values.view().rows, width, chunk, threads, *IsaPointers().back(), step);
}

// Halves of small integers are exact, so that the sums are those of a chain from token to token.
TEST(DecayingSum, IsTheSumThatOneCanFollowByHand) {
  GappedMatrix values(200, 3);
  for (int64_t row = 0; row < 200; ++row) {
    values.view().Row(row)[0] = 1;
    values.view().Row(row)[1] = row == 63 ? 8 : 0;
    values.view().Row(row)[2] = static_cast<float>(row % 5);
  }
  const auto sums = Read(0.5f, values, 200);
  EXPECT_EQ(sums[0], 1);
  EXPECT_EQ(sums[3], 1.5f);
  EXPECT_EQ(sums[6], 1.75f);
  EXPECT_EQ(sums[63 * 3 + 1], 8);
  EXPECT_EQ(sums[64 * 3 + 1], 4) << "in the next tile";
  EXPECT_EQ(sums[66 * 3 + 1], 1);
  double by_hand = 0;
  for (int64_t row = 0; row < 200; ++row) {
    by_hand = by_hand / 2 + static_cast<double>(row % 5);
    ASSERT_NEAR(sums[row * 3 + 2], by_hand, 8 * kEpsilon) << row;
  }
}

// Another decay rounds, and the grid alone decides how.
TEST(DecayingSum, ChunksAndThreadsChangeNoBits) {
  const GappedMatrix values(230, 600, 1);
  const auto one_by_one = Read(0.9f, values, 1);
  for (const int64_t chunk : {2, 7, 63, 64, 65, 128, 230}) {
    EXPECT_EQ(Read(0.9f, values, chunk, 3), one_by_one) << chunk;
  }
  double sum = 0;
  for (int64_t row = 0; row < 230; ++row) sum = sum * double{0.9f} + values.At(row, 5);
  EXPECT_NEAR(one_by_one[229 * 600 + 5], sum, 1e-4);
}

}  // namespace
}  // namespace godwit::ops::decaying_sum_test
