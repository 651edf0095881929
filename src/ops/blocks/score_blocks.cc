#include "ops/blocks/score_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "ops/alibi.h"
#include "ops/quantize.h"

namespace godwit::ops {
namespace {

// Parts that a core scores at a time. With 16 tokens each, they cover 16K tokens.
constexpr int64_t kTaskParts = 16 * kTileTokens;

float BiasAt(const Alibi& alibi, int64_t head, int64_t position, int64_t key) {
  float bias;
  FillAlibi(alibi, head, {.query = position, .shift = 0}, key, {&bias, 1});
  return bias;
}

// The queries of all heads, as tables: the sum of the levels for each pattern of four signs.
struct SignTables {
  static constexpr int64_t kPatterns = 16;
  static constexpr float kMost = 127;  // the largest entry
  const kernels::KernelTable& kernels;
  MatrixView<float> sums;      // [heads, groups * kPatterns], less the smallest sum of the group
  MatrixView<uint8_t> tables;  // [heads, groups * kPatterns]
  MatrixView<uint8_t> fine;    // [heads, groups * kPatterns]
  std::span<float> least;      // [heads], the smallest sums of all groups, added up
  std::span<int32_t> offsets;
  std::span<float> steps;

  SignTables(const Exec& exec, int64_t heads, int64_t head_dim, std::span<float> steps_of,
             std::span<int32_t> offsets_of)
      : kernels(exec.kernels),
        sums(exec.workspace.Matrix<float>(heads, SignGroups(head_dim) * kPatterns)),
        tables(exec.workspace.Matrix<uint8_t>(heads, sums.cols)),
        fine(exec.workspace.Matrix<uint8_t>(heads, sums.cols)),
        least(exec.workspace.Matrix<float>(1, heads).RowSpan(0)),
        offsets(offsets_of),
        steps(steps_of) {}

  // Fills the tables of the heads that share a KV head, from `head` on: q [heads, head_dim].
  // Returns whether they have fine tables. Where few groups of dimensions outweigh the others, 7
  // bits for each group would say little of those.
  bool Fill(MatrixView<const float> q, int64_t head, const SignLevels& levels) {
    bool needs_fine = false;
    for (int64_t h = 0; h < q.rows; ++h) {
      needs_fine |= AddUp(q.RowSpan(h), levels, head + h);
    }
    for (int64_t h = head; h < head + q.rows; ++h) Round(h, needs_fine);
    return needs_fine;
  }

 private:
  // Sets the head's step to the largest sum, or infinity if a sum is not finite. Returns whether
  // the head needs a fine table.
  bool AddUp(std::span<const float> q, const SignLevels& levels, int64_t head) {
    constexpr float kOutweighs = 4;  // range of a group beside the root mean square of all
    float largest = 0, squares = 0, all_least = 0;
    bool finite = true;
    for (int64_t group = 0; group < sums.cols / kPatterns; ++group) {
      float* const sum = sums.Row(head) + group * kPatterns;
      float lowest = 0, highest = 0;
      sum[0] = 0;
      for (int64_t i = 0; i < 4; ++i) {
        const auto d = static_cast<size_t>(group * 4 + i);
        const float above = d < q.size() ? q[d] * levels.above[d] : 0;
        const float below = d < q.size() ? q[d] * levels.below[d] : 0;
        const int64_t half = int64_t{1} << i;
        for (int64_t pattern = 0; pattern < half; ++pattern) {
          sum[half + pattern] = sum[pattern] + above;
          sum[pattern] += below;
        }
        lowest += std::min(above, below);
        highest += std::max(above, below);
      }
      finite &= std::isfinite(sum[0]) && std::isfinite(sum[kPatterns - 1]);
      for (int64_t pattern = 0; pattern < kPatterns; ++pattern) sum[pattern] -= lowest;
      const float range = highest - lowest;
      largest = std::max(largest, range);
      squares += range * range;
      all_least += lowest;
    }
    least[head] = all_least;
    steps[head] = finite ? largest : std::numeric_limits<float>::infinity();
    const auto groups = static_cast<float>(sums.cols / kPatterns);
    return largest * largest * groups > kOutweighs * kOutweighs * squares;
  }

  void Round(int64_t head, bool with_fine) {
    const auto h = static_cast<size_t>(head);
    const float most = with_fine ? kMost * (kernels::kSignFine + 1) : kMost;
    const bool usable = steps[h] >= 0x1p-110f && std::isfinite(steps[h]);
    const float factor = usable ? most / steps[h] : 0;
    steps[h] = usable ? steps[h] / most : 0;
    offsets[h] = usable ? static_cast<int32_t>(std::nearbyint(-least[h] * factor)) : 0;
    const float* const sum = sums.Row(head);
    uint8_t *const table = tables.Row(head), *const finer = fine.Row(head);
    if (!usable) {
      std::fill_n(table, sums.cols, uint8_t{0});
      std::fill_n(finer, sums.cols, uint8_t{0});
    } else if (!with_fine) {
      kernels.quantize(sum, factor, sums.cols, reinterpret_cast<int8_t*>(table));
    } else {
      for (int64_t i = 0; i < sums.cols; ++i) {
        const auto entry = static_cast<int32_t>(std::min(std::nearbyint(sum[i] * factor), most));
        const int32_t coarse = std::min(entry / kernels::kSignFine, static_cast<int32_t>(kMost));
        table[i] = static_cast<uint8_t>(coarse);
        finer[i] = static_cast<uint8_t>(entry - coarse * kernels::kSignFine);
      }
    }
  }
};

}  // namespace

BlockScorer::BlockScorer(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                         const IndexView& index, MatrixView<const float> q, int64_t position)
    : kernels_(exec.kernels),
      shape_(shape),
      alibi_(alibi),
      index_(index),
      vectors_(index.shape.signs() ? index.means : index.parts),
      vector_tokens_(index.shape.signs() ? kTileTokens : index.shape.part_tokens()),
      position_(position),
      group_(shape.heads / shape.kv_heads),
      rows_(group_ * (index.shape.signs() ? 2 : 1)),
      scales_(exec.workspace.Matrix<float>(1, shape.kv_heads * rows_).RowSpan(0)),
      sums_(exec.workspace.Matrix<int32_t>(1, shape.kv_heads * rows_).RowSpan(0)) {
  const int64_t width = vectors_.width;
  integers_ = exec.workspace.Matrix<int8_t>(std::ssize(scales_), kernels::PadToLanes(width));
  const int64_t tile = rows_ * kTileTokens;
  biases_ = exec.workspace.Matrix<float>(exec.pool.threads(), tile);
  tiles_ = exec.workspace.Matrix<float>(exec.pool.threads(), tile);
  if (index.shape.signs()) {
    MakeSignQueries(exec, q);
    return;
  }
  for (int64_t h = 0; h < q.rows; ++h) {
    int8_t* const row = integers_.Row(h);
    Quantize(q.Row(h), q.cols, h);
    for (int64_t d = q.cols; d < width; ++d) {
      row[d] = static_cast<int8_t>(std::abs(row[d - q.cols]));
    }
    sums_[h] = std::accumulate(row, row + width, 0);
  }
}

float BlockScorer::Quantize(const float* q, int64_t head_dim, int64_t row) {
  int8_t* const integers = integers_.Row(row);
  std::fill_n(integers, integers_.cols, int8_t{0});
  const RowQuantization result = QuantizeRow(kernels_, q, head_dim, integers);
  scales_[row] = result.scale;
  sums_[row] = result.sum;
  return result.scale;
}

void BlockScorer::MakeSignQueries(const Exec& exec, MatrixView<const float> q) {
  const auto scaled = exec.workspace.Matrix<float>(1, q.cols).RowSpan(0);
  for (int64_t h = 0; h < q.rows; ++h) {
    const int64_t kv_head = h / group_, row = kv_head * rows_ + h % group_;
    const SignLevels levels = index_.Levels(kv_head);
    for (int64_t d = 0; d < q.cols; ++d) {
      scaled[d] = q.Row(h)[d] * levels.Unit(d);
    }
    const float scale = Quantize(scaled.data(), q.cols, row);
    SubtractRounded(integers_.Row(row), scale, q.cols, scaled.data());
    Quantize(scaled.data(), q.cols, row + group_);
  }
  steps_ = exec.workspace.Matrix<float>(1, q.rows).RowSpan(0);
  offsets_ = exec.workspace.Matrix<int32_t>(1, q.rows).RowSpan(0);
  SignTables queries(exec, q.rows, q.cols, steps_, offsets_);
  tables_ = queries.tables;
  fine_ = queries.fine;
  const int64_t kv_heads = shape_.kv_heads;
  has_fine_ = exec.workspace.Matrix<bool>(1, kv_heads).RowSpan(0);
  exec.Parallel(kv_heads, [&](int64_t kv_head) {
    const int64_t head = kv_head * group_;
    has_fine_[kv_head] = queries.Fill(q.Rows(head, head + group_), head, index_.Levels(kv_head));
  });
}

void BlockScorer::Score(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
                        int worker) const {
  ScoreVectors(kv_head, begin, end, scores, worker);
  if (index_.shape.signs()) AddSigns(kv_head, begin, end, scores, worker);
}

void BlockScorer::ScoreVectors(int64_t kv_head, int64_t begin, int64_t end,
                               MatrixView<float> scores, int worker) const {
  const int64_t head = kv_head * group_, query = kv_head * rows_;
  float* const bias = alibi_.slopes.empty() ? nullptr : biases_.Row(worker);
  if (bias != nullptr) std::fill_n(bias, rows_ * kTileTokens, 0.0f);
  for (int64_t part = begin; part < end;) {
    const int64_t i = part / kTileTokens, first = part % kTileTokens;
    const int64_t keys = std::min(kTileTokens, end - i * kTileTokens);
    for (int64_t at = 0; bias != nullptr && at < group_ * kTileTokens; ++at) {
      const int64_t last = i * kTileTokens + at % kTileTokens + 1;
      bias[at] = BiasAt(alibi_, head + at / kTileTokens, position_, last * vector_tokens_ - 1);
    }
    const RepresentativeTile tile = vectors_.Vectors(kv_head, i);
    // A whole tile is scored in place.
    const int64_t to = part - begin;
    const bool whole = keys == kTileTokens && first == 0 && rows_ == group_ &&
                       reinterpret_cast<uintptr_t>(scores.Row(0) + to) % 64 == 0;
    float* const out = whole ? scores.Row(0) + to : tiles_.Row(worker);
    const int64_t stride = whole ? scores.stride : kTileTokens;
    kernels_.score_tile_i8({.q = integers_.Row(query),
                            .q_stride = integers_.stride,
                            .q_scales = &scales_[query],
                            .q_sums = &sums_[query],
                            .rows = rows_,
                            .k = tile.vectors,
                            .k_scales = tile.scales,
                            .keys = keys,
                            .width = vectors_.width,
                            .scale = shape_.scale,
                            .bias = bias,
                            .scores = out,
                            .scores_stride = stride,
                            .next_k = (i + 1) * kTileTokens < end
                                          ? vectors_.Vectors(kv_head, i + 1).vectors
                                          : nullptr});
    for (int64_t row = 0; !whole && row < group_; ++row) {
      float* const score = scores.Row(row) + to;
      std::copy_n(out + row * stride + first, keys - first, score);
      for (int64_t rest = row + group_; rest < rows_; rest += group_) {
        for (int64_t j = first; j < keys; ++j) score[j - first] += out[rest * stride + j];
      }
    }
    part += keys - first;
  }
}

void BlockScorer::AddSigns(int64_t kv_head, int64_t begin, int64_t end, MatrixView<float> scores,
                           int worker) const {
  const int64_t head = kv_head * group_;
  float* const signs = tiles_.Row(worker);
  // Scores a page at a time while the next one is fetched, to hide the latency of memory.
  SignTiles tiles = index_.parts.Signs(kv_head, begin);
  for (int64_t i = begin, next = 0; i < end; i = next) {
    next = std::min({end, i + tiles.count, i + kTileTokens});
    const SignTiles ahead = next < end ? index_.parts.Signs(kv_head, next) : SignTiles{};
    kernels_.score_signs({.tables = tables_.Row(head),
                          .fine = has_fine_[kv_head] ? fine_.Row(head) : nullptr,
                          .offsets = &offsets_[head],
                          .rows = group_,
                          .groups = SignGroups(shape_.head_dim),
                          .signs = tiles.signs,
                          .tiles = next - i,
                          .scores = signs,
                          .scores_stride = kTileTokens,
                          .next = ahead.signs});
    for (int64_t row = 0; row < group_; ++row) {
      const float factor = std::numbers::log2e_v<float> * shape_.scale * steps_[head + row];
      const float* const of_row = signs + row * kTileTokens;
      float* const score = scores.Row(row) + i - begin;
      for (int64_t j = 0; j < next - i; ++j) score[j] += of_row[j] * factor;
    }
    tiles = ahead;
  }
}

void ScoreBlocks(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                 const IndexView& index, MatrixView<const float> q, int64_t position,
                 int64_t blocks, MatrixView<float> scores) {
  const int64_t parts = blocks * ScoredParts(index.shape);
  for (int64_t head = 0; head < scores.rows; ++head) {
    std::fill(scores.Row(head) + parts, scores.Row(head) + scores.cols,
              -std::numeric_limits<float>::infinity());
  }
  Workspace::Scope scope(exec.workspace);
  const BlockScorer scorer(exec, shape, alibi, index, q, position);
  const int64_t tasks = (parts + kTaskParts - 1) / kTaskParts;
  const int64_t group = shape.heads / shape.kv_heads;
  exec.Parallel(tasks * shape.kv_heads, [&](int64_t task, int worker) {
    const int64_t kv_head = task / tasks, begin = task % tasks * kTaskParts;
    const int64_t end = std::min(parts, begin + kTaskParts);
    scorer.Score(kv_head, begin, end,
                 scores.Rows(kv_head * group, (kv_head + 1) * group).Cols(begin, end), worker);
  });
}

}  // namespace godwit::ops
