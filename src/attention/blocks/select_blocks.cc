#include "attention/blocks/select_blocks.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>

#include "attention/blocks/score_blocks.h"

namespace godwit {
namespace {

// worth = the larger of it and the head's shares of attention, in powers of two.
void AddShares(const kernels::KernelTable& kernels, std::span<const float> scores,
               std::span<float> worth) {
  const kernels::PowerSum all = kernels.sum_powers(scores.data(), std::ssize(scores));
  const float total = all.maximum + std::log2(all.sum);
  for (size_t i = 0; i < worth.size(); ++i) {
    const float share = scores[i] - total;
    worth[i] = share > worth[i] ? share : worth[i];
  }
}

// worth: of parts, so many to a block; becomes that of the blocks.
void ToBlocks(int64_t parts, const BlockChoice& choice, float* worth) {
  for (int64_t block = choice.first; block < choice.last; ++block) {
    worth[block] = *std::max_element(worth + block * parts, worth + (block + 1) * parts);
  }
}

// order: room for the worth of all blocks.
void Choose(const float* worth, const BlockChoice& choice, std::span<float> order,
            std::span<int32_t> chosen) {
  if (chosen.empty()) return;
  std::copy_n(worth + choice.first, order.size(), order.begin());
  const auto last = order.begin() + choice.count - 1;
  std::ranges::nth_element(order, last, std::ranges::greater{});
  const float least = *last;
  int64_t equal = std::count(order.begin(), last + 1, least);  // that are chosen
  auto next = chosen.begin();
  for (int64_t block = choice.first; next != chosen.end(); ++block) {
    if (worth[block] > least || (worth[block] == least && equal-- > 0)) {
      *next++ = static_cast<int32_t>(block);
    }
  }
}

}  // namespace

void SelectBlocks(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                  int64_t layer, MatrixView<const float> q, int64_t position,
                  const BlockChoice& choice, MatrixView<int32_t> chosen) {
  assert(choice.first <= choice.last && choice.count <= choice.last - choice.first);
  assert(chosen.cols == choice.count && q.rows == geometry.shape.heads);
  Workspace::Scope scope(exec.workspace);
  const int64_t parts_of_block = ScoredParts(index.shape());
  const int64_t parts = choice.last * parts_of_block;
  const int64_t padded = (parts + kernels::kTileTokens - 1) / kernels::kTileTokens;
  const auto scores =
      exec.workspace.Matrix<float>(geometry.shape.heads, padded * kernels::kTileTokens);
  ScoreBlocks(exec, geometry, index, layer, q, position, choice.last, scores);
  const int64_t heads = geometry.shape.heads / chosen.rows;  // that choose together
  const auto worth = exec.workspace.Matrix<float>(chosen.rows, parts);
  const auto order = exec.workspace.Matrix<float>(chosen.rows, choice.last - choice.first);
  exec.Parallel(chosen.rows, [&](int64_t i) {
    std::fill_n(worth.Row(i), parts, -std::numeric_limits<float>::infinity());
    for (int64_t head = i * heads; head < (i + 1) * heads; ++head) {
      AddShares(exec.kernels, scores.RowSpan(head).first(static_cast<size_t>(parts)),
                worth.RowSpan(i));
    }
    ToBlocks(parts_of_block, choice, worth.Row(i));
    Choose(worth.Row(i), choice, order.RowSpan(i), chosen.RowSpan(i));
  });
}

}  // namespace godwit
