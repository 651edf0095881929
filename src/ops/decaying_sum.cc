#include "ops/decaying_sum.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "kernels/decaying_sum.h"
#include "kernels/kernel_table.h"
#include "ops/profile.h"

namespace godwit::ops {

void DecayingSum(const Exec& exec, float decay, std::span<const StatePiece> pieces,
                 MatrixView<const float> values, MatrixView<float> out) {
  constexpr int64_t kColumns = 256;  // of a task
  assert(values.rows == out.rows && values.cols == out.cols);
  std::array<float, kernels::kTileTokens + 1> powers = {1};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * decay;
  const ProfilePart measured(exec.profile, StepPart::kAttention);
  exec.Parallel((values.cols + kColumns - 1) / kColumns, [&](int64_t task) {
    const int64_t first = task * kColumns, last = std::min(values.cols, first + kColumns);
    for (const StatePiece& piece : pieces) {
      const int64_t before = std::ssize(piece.kept) - piece.rows;
      assert(std::ssize(piece.kept) <= kernels::kTileTokens);
      for (int64_t i = 0; i < piece.rows; ++i) {
        const int64_t row = piece.first_row + i;
        std::copy(values.Row(row) + first, values.Row(row) + last, piece.kept[before + i] + first);
        kernels::DecayingSum({.powers = powers.data(),
                              .begin = piece.begin,
                              .rows = piece.kept.data(),
                              .count = before + i + 1,
                              .first = first,
                              .last = last,
                              .out = out.Row(row)});
      }
      // The sum at the tile's end is that of its last row.
      if (piece.end == nullptr) continue;
      const float* const sum = out.Row(piece.first_row + piece.rows - 1);
      std::copy(sum + first, sum + last, piece.end + first);
    }
  });
}

}  // namespace godwit::ops
