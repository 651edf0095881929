#include "ops/blocks/importance.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>

#include "ops/alibi.h"
#include "ops/read_keys.h"

namespace godwit::ops {
namespace {

// importance += the shares that a query gives the keys. scores: log2, of the keys that it sees.
void AddShares(const kernels::KernelTable& kernels, std::span<const float> scores,
               float* importance) {
  const kernels::PowerSum all = kernels.sum_powers(scores.data(), std::ssize(scores));
  for (size_t j = 0; j < scores.size(); ++j) {
    importance[j] += std::exp2(scores[j] - all.maximum) / all.sum;
  }
}

// order: scratch space for the places of a block.
void Choose(std::span<float> importance, std::span<uint16_t> order, std::span<uint16_t> places) {
  for (float& of_token : importance) of_token = of_token > 0 ? of_token : 0;  // NaN becomes 0, too
  std::iota(order.begin(), order.end(), uint16_t{0});
  std::ranges::partial_sort(order, order.begin() + std::ssize(places), [&](uint16_t a, uint16_t b) {
    return importance[a] != importance[b] ? importance[a] > importance[b] : a < b;
  });
  std::ranges::copy(order.first(places.size()), places.begin());
  std::ranges::sort(places);
}

}  // namespace

void FindImportant(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                   const KvView& kv, int64_t block_tokens, std::span<const PlacedQuery> queries,
                   int64_t begin, int64_t end, MatrixView<uint16_t> places) {
  const int64_t group = shape.heads / shape.kv_heads, rows = std::ssize(queries);
  const int64_t tokens = end - begin, tiles = tokens / kTileTokens;
  assert(begin % block_tokens == 0 && tokens % block_tokens == 0);
  assert(places.rows == tokens / block_tokens * shape.kv_heads && places.cols <= block_tokens);
  Workspace::Scope scope(exec.workspace);
  const int threads = exec.pool.threads();
  // Scratch memory of a core. A tile of keys is a packed weight of kTileTokens outputs (packing.h).
  const auto keys = exec.workspace.Matrix<float>(threads, tokens * shape.head_dim);
  const auto queries_of_head = exec.workspace.Matrix<float>(threads, rows * shape.head_dim);
  const auto scores_of_head = exec.workspace.Matrix<float>(threads, rows * tokens);
  const auto sums = exec.workspace.Matrix<float>(threads, tokens);
  const auto biases = exec.workspace.Matrix<float>(threads, tokens);
  const auto orders = exec.workspace.Matrix<uint16_t>(threads, block_tokens);
  exec.Parallel(shape.kv_heads, [&](int64_t kv_head, int worker) {
    for (int64_t tile = 0; tile < tiles; ++tile) {
      ReadKeys(kv, shape.head_dim, kv_head, begin / kTileTokens + tile,
               keys.Row(worker) + tile * shape.head_dim * kTileTokens, kTileTokens);
    }
    const auto importance = sums.RowSpan(worker), bias = biases.RowSpan(worker);
    std::ranges::fill(importance, 0.0f);
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      float* const q = queries_of_head.Row(worker);
      for (int64_t row = 0; row < rows; ++row) {
        std::ranges::copy(queries[row].q.subspan(head * shape.head_dim, shape.head_dim),
                          q + row * shape.head_dim);
      }
      exec.kernels.gemm_f32({.a = q,
                             .a_stride = shape.head_dim,
                             .w = keys.Row(worker),
                             .bias = nullptr,
                             .out = scores_of_head.Row(worker),
                             .out_stride = tokens,
                             .rows = rows,
                             .k = shape.head_dim,
                             .columns = tokens,
                             .panel_begin = 0,
                             .panel_end = tiles});
      for (int64_t row = 0; row < rows; ++row) {
        const int64_t position = queries[row].position;
        const int64_t seen = position - begin + 1;
        float* const scores = scores_of_head.Row(worker) + row * tokens;
        FillAlibi(alibi, head, {.query = position, .shift = 0}, begin, bias.first(seen));
        for (int64_t j = 0; j < seen; ++j) {
          scores[j] = std::numbers::log2e_v<float> * (shape.scale * scores[j] + bias[j]);
        }
        AddShares(exec.kernels, {scores, static_cast<size_t>(seen)}, importance.data());
      }
    }
    for (int64_t block = 0; block < tokens / block_tokens; ++block) {
      Choose(importance.subspan(block * block_tokens, block_tokens), orders.RowSpan(worker),
             places.RowSpan(block * shape.kv_heads + kv_head));
    }
  });
}

}  // namespace godwit::ops
