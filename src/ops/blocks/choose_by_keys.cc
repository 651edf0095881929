#include "ops/blocks/choose_by_keys.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/blocks/weigh_blocks.h"

namespace godwit::ops {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

// Turns the masses of a head (log2) into shares of their sum (log2).
void ToShares(const kernels::KernelTable& kernels, std::span<float> masses) {
  const kernels::PowerSum all = kernels.sum_powers(masses.data(), std::ssize(masses));
  const float total = all.maximum + std::log2(all.sum);
  for (float& mass : masses) mass -= total;
}

// worth = max(worth, the shares of each head).
void AddWorth(MatrixView<const float> shares, std::span<float> worth) {
  for (int64_t head = 0; head < shares.rows; ++head) {
    for (size_t i = 0; i < static_cast<size_t>(shares.cols); ++i) {
      worth[i] = std::max(worth[i], shares.Row(head)[i]);
    }
  }
}

// Places from `first` on. The first `count` are sorted by falling worth.
void Order(std::span<const float> worth, int64_t first, int64_t count, std::span<int32_t> order) {
  std::iota(order.begin(), order.end(), static_cast<int32_t>(first));
  std::ranges::partial_sort(order, order.begin() + count, [&](int32_t a, int32_t b) {
    const float of_a = worth[a], of_b = worth[b];
    return of_a != of_b ? of_a > of_b : a < b;
  });
}

// The number of places, in that order, that give every head its share.
int64_t Enough(MatrixView<const float> shares, const ShareLimit& limit,
               std::span<const int32_t> order) {
  int64_t most = std::min(limit.least, std::ssize(order));
  for (int64_t head = 0; limit.top_p < 1 && head < shares.rows; ++head) {
    double sum = 0;
    for (int64_t i = 0; i < limit.seen; ++i) sum += std::exp2(double{shares.Row(head)[i]});
    int64_t count = 0;
    for (; count < std::ssize(order) && sum < limit.top_p; ++count) {
      sum += std::exp2(double{shares.Row(head)[order[count]]});
    }
    most = std::max(most, count);
  }
  return limit.top_p < 1 ? most : std::ssize(order);
}

}  // namespace

void ChooseByKeys(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                  const KvView& kv, int64_t block_tokens, MatrixView<const float> q,
                  int64_t position, MatrixView<const int32_t> blocks, const ShareLimit& limit,
                  MatrixView<int32_t> chosen) {
  assert(blocks.rows == chosen.rows && limit.seen <= blocks.cols);
  Workspace::Scope scope(exec.workspace);
  const int64_t competing = blocks.cols - limit.seen;
  const int64_t heads = shape.heads / chosen.rows;  // heads that choose together
  const auto shares = exec.workspace.Matrix<float>(shape.heads, blocks.cols);
  WeighBlocks(exec, shape, alibi, kv, block_tokens, q, position, blocks, shares);
  const auto worth = exec.workspace.Matrix<float>(chosen.rows, blocks.cols);
  const auto order = exec.workspace.Matrix<int32_t>(chosen.rows, competing);
  exec.Parallel(chosen.rows, [&](int64_t i) {
    const auto own = shares.Rows(i * heads, (i + 1) * heads);
    for (int64_t head = 0; head < heads; ++head) ToShares(exec.kernels, own.RowSpan(head));
    std::ranges::fill(worth.RowSpan(i), kNothing);
    AddWorth(own, worth.RowSpan(i));
    const int64_t most = std::min(competing, chosen.cols);
    Order(worth.RowSpan(i), limit.seen, most, order.RowSpan(i));
    const auto best = order.RowSpan(i).first(most);
    const auto taken = chosen.RowSpan(i).first(Enough(own, limit, best));
    for (size_t c = 0; c < taken.size(); ++c) taken[c] = blocks.Row(i)[best[c]];
    std::ranges::sort(taken);
    std::ranges::fill(chosen.RowSpan(i).subspan(taken.size()), -1);
  });
}

void ChooseForAll(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                  const KvView& kv, int64_t block_tokens, std::span<const PlacedQuery> queries,
                  int64_t first, int64_t last, MatrixView<int32_t> chosen) {
  assert(first + chosen.cols <= last);
  Workspace::Scope scope(exec.workspace);
  const int64_t heads = shape.heads / chosen.rows;
  const auto shares = exec.workspace.Matrix<float>(shape.heads, last);
  const auto worth = exec.workspace.Matrix<float>(chosen.rows, last);
  for (int64_t i = 0; i < chosen.rows; ++i) std::ranges::fill(worth.RowSpan(i), kNothing);
  const auto blocks = exec.workspace.Matrix<int32_t>(1, last);
  std::iota(blocks.Row(0), blocks.Row(0) + last, 0);
  for (const PlacedQuery& query : queries) {
    const int64_t before = std::min(last, (query.position + 1) / block_tokens);
    const auto own = shares.Cols(0, before);
    WeighBlocks(exec, shape, alibi, kv, block_tokens,
                {query.q.data(), shape.heads, shape.head_dim, shape.head_dim}, query.position,
                blocks.Cols(0, before), own);
    exec.Parallel(chosen.rows, [&](int64_t i) {
      const auto of_heads = own.Rows(i * heads, (i + 1) * heads);
      for (int64_t head = 0; head < heads; ++head) ToShares(exec.kernels, of_heads.RowSpan(head));
      AddWorth(of_heads, worth.RowSpan(i));
    });
  }
  const auto order = exec.workspace.Matrix<int32_t>(chosen.rows, last - first);
  exec.Parallel(chosen.rows, [&](int64_t i) {
    Order(worth.RowSpan(i), first, chosen.cols, order.RowSpan(i));
    std::copy_n(order.Row(i), chosen.cols, chosen.Row(i));
    std::ranges::sort(chosen.RowSpan(i));
  });
}

}  // namespace godwit::ops
