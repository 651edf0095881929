#include "ops/decaying_sum.h"

#include <array>

#include "kernels/kernel_table.h"
#include "ops/test_support.h"

namespace godwit::ops::decaying_sum_test {
namespace {

using kernels::kTileTokens;

// One text in one layer, cut into pieces by hand: rows of the tile, and states.
class Text {
 public:
  Text(int64_t width, float decay) : width_(width), decay_(decay) {
    for (auto& row : rows_) row.resize(width);
    begin_.resize(width);
    end_.resize(width);
  }

  // Reads values in steps of `chunk` rows, and returns the sums, row after row.
  std::vector<float> Read(const GappedMatrix& values, int64_t chunk, int threads = 1) {
    ThreadPool pool(threads);
    Workspace workspace;
    const Exec exec{.pool = pool, .kernels = *IsaPointers().back()->table, .workspace = workspace};
    std::vector<float> sums;
    const int64_t rows = values.view().rows;
    for (int64_t at = 0; at < rows; at += chunk) {
      const int64_t n = std::min(chunk, rows - at);
      GappedMatrix out(n, width_);
      const auto pieces = Pieces(n);
      DecayingSum(exec, decay_, pieces, values.view().Rows(at, at + n), out.view());
      for (int64_t row = 0; row < n; ++row) {
        const auto values_of_row = out.Row(row);
        sums.insert(sums.end(), values_of_row.begin(), values_of_row.end());
      }
      length_ += n;
      if (std::ssize(pieces) > 1 || length_ % kTileTokens == 0) begin_ = end_;
    }
    return sums;
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
  float decay_;
  int64_t length_ = 0;
  std::array<std::vector<float>, kTileTokens> rows_;
  std::vector<float*> kept_;
  std::vector<float> begin_, end_;
};

// Halves of small integers are exact, so that the sums are those of a chain from token to token.
TEST(DecayingSum, IsTheSumThatOneCanFollowByHand) {
  GappedMatrix values(200, 3);
  for (int64_t row = 0; row < 200; ++row) {
    values.view().Row(row)[0] = 1;
    values.view().Row(row)[1] = row == 63 ? 8 : 0;
    values.view().Row(row)[2] = static_cast<float>(row % 5);
  }
  const auto sums = Text(3, 0.5f).Read(values, 200);
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
  const auto one_by_one = Text(600, 0.9f).Read(values, 1);
  for (const int64_t chunk : {2, 7, 63, 64, 65, 128, 230}) {
    EXPECT_EQ(Text(600, 0.9f).Read(values, chunk, 3), one_by_one) << chunk;
  }
  double sum = 0;
  for (int64_t row = 0; row < 230; ++row) sum = sum * double{0.9f} + values.At(row, 5);
  EXPECT_NEAR(one_by_one[229 * 600 + 5], sum, 1e-4);
}

}  // namespace
}  // namespace godwit::ops::decaying_sum_test
