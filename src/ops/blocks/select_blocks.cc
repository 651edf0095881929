#include "ops/blocks/select_blocks.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>

#include "ops/blocks/score_blocks.h"

namespace godwit::ops {
namespace {

// worth = max(worth, the head's shares of attention), both in log2.
void AddShares(const kernels::KernelTable& kernels, std::span<const float> scores,
               std::span<float> worth) {
  const kernels::PowerSum all = kernels.sum_powers(scores.data(), std::ssize(scores));
  const float total = all.maximum + std::log2(all.sum);
  for (size_t i = 0; i < worth.size(); ++i) {
    const float share = scores[i] - total;
    worth[i] = share > worth[i] ? share : worth[i];
  }
}

// worth += the head's scores.
void AddScores(std::span<const float> scores, bool is_first, std::span<float> worth) {
  for (size_t i = 0; i < worth.size(); ++i) worth[i] = is_first ? scores[i] : worth[i] + scores[i];
}

// Turns the worth of parts, `parts` to a block, into the worth of blocks.
void ToBlocks(int64_t parts, const BlockChoice& choice, float* worth) {
  if (parts == 1) return;
  for (int64_t block = choice.first; block < choice.last; ++block) {
    worth[block] = *std::max_element(worth + block * parts, worth + (block + 1) * parts);
  }
}

// The n-th largest number, from 1 on. The larger ones move before it.
float Largest(int64_t n, std::span<float> numbers) {
  const auto at = numbers.begin() + n - 1;
  std::ranges::nth_element(numbers, at, std::ranges::greater{});
  return *at;
}

// Blocks in a stretch. The largest worth of a stretch decides whether its blocks are looked at.
constexpr int64_t kStretch = 16;
constexpr int64_t StretchesOf(int64_t blocks) { return (blocks + kStretch - 1) / kStretch; }

// order, maxima: scratch space for the worth of all blocks, and of their stretches.
void Choose(const float* worth, const BlockChoice& choice, std::span<float> order,
            std::span<float> maxima, std::span<int32_t> chosen) {
  if (chosen.empty()) return;
  const auto stretch = [&](size_t i) {
    const int64_t begin = choice.first + static_cast<int64_t>(i) * kStretch;
    return std::span(worth + begin, worth + std::min(begin + kStretch, choice.last));
  };
  for (size_t i = 0; i < maxima.size(); ++i) maxima[i] = std::ranges::max(stretch(i));
  // At least choice.count blocks are worth `bound` or more, so no lesser one is chosen.
  float bound = -std::numeric_limits<float>::infinity();
  if (choice.count <= std::ssize(maxima)) {
    std::ranges::copy(maxima, order.begin());
    bound = Largest(choice.count, order.first(maxima.size()));
  }
  auto end = order.begin();
  for (size_t i = 0; i < maxima.size(); ++i) {
    if (maxima[i] >= bound) end = std::ranges::copy(stretch(i), end).out;
  }
  const float least = Largest(choice.count, std::span(order.begin(), end));
  int64_t equal = std::count(order.begin(), order.begin() + choice.count, least);  // to choose
  auto next = chosen.begin();
  for (size_t i = 0; i < maxima.size(); ++i) {
    if (maxima[i] < least) continue;
    for (const float& of_block : stretch(i)) {
      if (of_block > least || (of_block == least && equal-- > 0)) {
        *next++ = static_cast<int32_t>(&of_block - worth);
      }
    }
  }
}

}  // namespace

void SelectBlocks(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                  const IndexView& index, MatrixView<const float> q, int64_t position,
                  const BlockChoice& choice, MatrixView<int32_t> chosen) {
  assert(choice.first <= choice.last && choice.count <= choice.last - choice.first);
  assert(chosen.cols == choice.count && q.rows == shape.heads);
  Workspace::Scope scope(exec.workspace);
  const int64_t parts_of_block = ScoredParts(index.shape);
  const int64_t parts = choice.last * parts_of_block;
  const int64_t padded = (parts + kTileTokens - 1) / kTileTokens;
  const auto scores = exec.workspace.Matrix<float>(shape.heads, padded * kTileTokens);
  ScoreBlocks(exec, shape, alibi, index, q, position, choice.last, scores);
  const int64_t heads = shape.heads / chosen.rows;  // heads that choose together
  const auto worth = exec.workspace.Matrix<float>(chosen.rows, parts);
  const int64_t blocks = choice.last - choice.first;
  const auto order = exec.workspace.Matrix<float>(chosen.rows, blocks);
  const auto maxima = exec.workspace.Matrix<float>(chosen.rows, StretchesOf(blocks));
  exec.Parallel(chosen.rows, [&](int64_t i) {
    std::fill_n(worth.Row(i), parts, -std::numeric_limits<float>::infinity());
    for (int64_t head = i * heads; head < (i + 1) * heads; ++head) {
      const auto of_head = scores.RowSpan(head).first(parts);
      if (choice.sums) {
        AddScores(of_head, head == i * heads, worth.RowSpan(i));
      } else {
        AddShares(exec.kernels, of_head, worth.RowSpan(i));
      }
    }
    ToBlocks(parts_of_block, choice, worth.Row(i));
    Choose(worth.Row(i), choice, order.RowSpan(i), maxima.RowSpan(i), chosen.RowSpan(i));
    if (choice.ranked) {
      const float* const worths = worth.Row(i);
      std::ranges::sort(chosen.RowSpan(i), [worths](int32_t a, int32_t b) {
        return worths[a] != worths[b] ? worths[a] > worths[b] : a < b;
      });
    }
  });
}

}  // namespace godwit::ops
