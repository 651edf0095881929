#include "attention/blocks/score_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "ops/alibi.h"
#include "ops/quantize.h"

namespace godwit {
namespace {

using kernels::kTileTokens;

// Tiles of representatives that a core scores at a time: of parts of 16 tokens, those of 16K.
constexpr int64_t kTaskTiles = 16;

// Tiles of signs from which one is fetched to which one is scored: memory answers in 100 to 150 ns,
// in which a core scores two or three.
constexpr int64_t kAhead = 4;

// body(kv_head, begin, end, worker) for ranges of `tiles`.
template <class Body>
void ForTiles(const Exec& exec, int64_t kv_heads, int64_t tiles, int64_t task_tiles,
              const Body& body) {
  const int64_t tasks = (tiles + task_tiles - 1) / task_tiles;
  exec.Parallel(tasks * kv_heads, [&](int64_t task, int worker) {
    const int64_t begin = task % tasks * task_tiles;
    body(task / tasks, begin, std::min(tiles, begin + task_tiles), worker);
  });
}

float BiasAt(const ops::Alibi& alibi, int64_t head, int64_t position, int64_t key) {
  float bias;
  ops::FillAlibi(alibi, head, {.query = position, .shift = 0}, key, {&bias, 1});
  return bias;
}

// The queries of all heads as the kernel of int8 scores reads them: (q, |q|), or q alone.
struct Int8Queries {
  MatrixView<int8_t> integers;  // [heads, width]
  std::span<float> scales;
  std::span<int32_t> sums;

  Int8Queries(const Exec& exec, MatrixView<const float> q, int64_t width)
      : integers(exec.workspace.Matrix<int8_t>(q.rows, kernels::PadToLanes(width))),
        scales(exec.workspace.Matrix<float>(1, q.rows).RowSpan(0)),
        sums(exec.workspace.Matrix<int32_t>(1, q.rows).RowSpan(0)) {
    for (int64_t h = 0; h < q.rows; ++h) {
      int8_t* const row = integers.Row(h);
      std::fill_n(row, integers.cols, int8_t{0});
      const ops::RowQuantization result = ops::QuantizeRow(exec.kernels, q.Row(h), q.cols, row);
      for (int64_t d = q.cols; d < width; ++d) {
        row[d] = static_cast<int8_t>(std::abs(row[d - q.cols]));
      }
      scales[static_cast<size_t>(h)] = result.scale;
      sums[static_cast<size_t>(h)] = std::accumulate(row, row + width, 0);
    }
  }
};

void ScoreParts(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                int64_t layer, MatrixView<const float> q, int64_t position, int64_t parts,
                MatrixView<float> scores) {
  const ops::AttentionShape& shape = geometry.shape;
  const ops::Alibi& alibi = geometry.alibi;
  const int64_t group = shape.heads / shape.kv_heads;
  const Int8Queries queries(exec, q, index.width());
  const auto biases = exec.workspace.Matrix<float>(exec.pool.threads(),
                                                   alibi.slopes.empty() ? 0 : group * kTileTokens);
  const int64_t tiles = (parts + kTileTokens - 1) / kTileTokens;
  ForTiles(exec, shape.kv_heads, tiles, kTaskTiles,
           [&](int64_t kv_head, int64_t begin, int64_t end, int worker) {
             const int64_t head = kv_head * group;
             float* const bias = biases.cols == 0 ? nullptr : biases.Row(worker);
             for (int64_t i = begin; i < end; ++i) {
               const int64_t keys = std::min(kTileTokens, parts - i * kTileTokens);
               for (int64_t at = 0; bias != nullptr && at < group * kTileTokens; ++at) {
                 const int64_t part = i * kTileTokens + at % kTileTokens;
                 bias[at] = BiasAt(alibi, head + at / kTileTokens, position,
                                   (part + 1) * index.shape().part_tokens() - 1);
               }
               const RepresentativeTile tile = index.Tile(layer, kv_head, i);
               exec.kernels.score_tile_i8(
                   {.q = queries.integers.Row(head),
                    .q_stride = queries.integers.stride,
                    .q_scales = queries.scales.data() + head,
                    .q_sums = queries.sums.data() + head,
                    .rows = group,
                    .k = tile.vectors,
                    .k_scales = tile.scales,
                    .keys = keys,
                    .width = index.width(),
                    .scale = shape.scale,
                    .bias = bias,
                    .scores = scores.Row(head) + i * kTileTokens,
                    .scores_stride = scores.stride,
                    .next_k = i + 1 < end ? index.Tile(layer, kv_head, i + 1).vectors : nullptr});
             }
           });
}

// The queries of all heads as tables of what the levels of four signs add up to.
struct SignTables {
  static constexpr int64_t kPatterns = 16;
  static constexpr float kMost = 127;  // of an entry
  MatrixView<float> sums;      // [heads, groups * kPatterns], each from its group's least on
  MatrixView<uint8_t> tables;  // [heads, groups * 2 * kPatterns]
  MatrixView<uint8_t> fine;    // likewise
  std::span<float> least;      // of all groups together
  std::span<int32_t> offsets;
  std::span<float> steps;

  SignTables(const Exec& exec, int64_t heads, int64_t head_dim)
      : sums(exec.workspace.Matrix<float>(heads, SignGroups(head_dim) * kPatterns)),
        tables(exec.workspace.Matrix<uint8_t>(heads, 2 * sums.cols)),
        fine(exec.workspace.Matrix<uint8_t>(heads, 2 * sums.cols)),
        least(exec.workspace.Matrix<float>(1, heads).RowSpan(0)),
        offsets(exec.workspace.Matrix<int32_t>(1, heads).RowSpan(0)),
        steps(exec.workspace.Matrix<float>(1, heads).RowSpan(0)) {}

  // Of the heads from `head` on, which share a KV head: q [heads that share it, head_dim]. Whether
  // they have fine tables: where few groups of dimensions outweigh all others, 7 bits for each
  // would say little of those.
  bool Fill(MatrixView<const float> q, int64_t head, const SignLevels& levels) {
    bool needs_fine = false;
    for (int64_t h = 0; h < q.rows; ++h) {
      needs_fine |= AddUp(q.RowSpan(h), levels, head + h);
    }
    for (int64_t h = head; h < head + q.rows; ++h) Round(h, needs_fine);
    return needs_fine;
  }

 private:
  // steps: the largest sum, infinity if one is not finite. Whether a fine table is needed.
  bool AddUp(std::span<const float> q, const SignLevels& levels, int64_t head) {
    constexpr float kOutweighs = 8;  // a group the root of the mean square of all
    float largest = 0, squares = 0, all_least = 0;
    bool finite = true;
    for (int64_t group = 0; group < sums.cols / kPatterns; ++group) {
      float* const sum = sums.Row(head) + group * kPatterns;
      const auto end = static_cast<size_t>(group * 4 + 4);
      for (unsigned pattern = 0; pattern < kPatterns; ++pattern) {
        sum[pattern] = 0;
        for (size_t d = end - 4; d < std::min(end, q.size()); ++d) {
          const bool above = (pattern >> d % 4 & 1) != 0;
          sum[pattern] += q[d] * (above ? levels.above[d] : levels.below[d]);
        }
      }
      finite &= std::isfinite(sum[0]) && std::isfinite(sum[kPatterns - 1]);
      const float lowest = *std::min_element(sum, sum + kPatterns);
      for (int64_t pattern = 0; pattern < kPatterns; ++pattern) sum[pattern] -= lowest;
      const float range = *std::max_element(sum, sum + kPatterns);
      largest = std::max(largest, range);
      squares += range * range;
      all_least += lowest;
    }
    least[static_cast<size_t>(head)] = all_least;
    steps[static_cast<size_t>(head)] = finite ? largest : std::numeric_limits<float>::infinity();
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
    for (int64_t i = 0; i < sums.cols; ++i) {
      const float scaled = usable ? std::nearbyint(sums.Row(head)[i] * factor) : 0;
      const auto entry = static_cast<int32_t>(std::min(scaled, most));
      const int64_t at = i / kPatterns * 2 * kPatterns + i % kPatterns;
      const auto put = [&](uint8_t* row, int32_t value) {
        row[at] = row[at + kPatterns] = static_cast<uint8_t>(value);
      };
      if (!with_fine) {
        put(tables.Row(head), entry);
        continue;
      }
      const int32_t coarse = std::min(entry / kernels::kSignFine, static_cast<int32_t>(kMost));
      put(tables.Row(head), coarse);
      put(fine.Row(head), entry - coarse * kernels::kSignFine);
    }
  }
};

void ScoreSigns(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                int64_t layer, MatrixView<const float> q, int64_t position, int64_t tiles,
                MatrixView<float> scores) {
  const ops::AttentionShape& shape = geometry.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  SignTables queries(exec, q.rows, q.cols);
  const auto has_fine = exec.workspace.Matrix<bool>(1, shape.kv_heads).RowSpan(0);
  exec.Parallel(shape.kv_heads, [&](int64_t kv_head) {
    const int64_t head = kv_head * group;
    has_fine[static_cast<size_t>(kv_head)] =
        queries.Fill(q.Rows(head, head + group), head, index.Levels(layer, kv_head));
  });
  ForTiles(
      exec, shape.kv_heads, tiles, kTaskTiles * 8,
      [&](int64_t kv_head, int64_t begin, int64_t end, int /*worker*/) {
        const int64_t head = kv_head * group;
        for (int64_t i = begin; i < end; ++i) {
          exec.kernels.score_signs(
              {.tables = queries.tables.Row(head),
               .fine = has_fine[static_cast<size_t>(kv_head)] ? queries.fine.Row(head) : nullptr,
               .offsets = queries.offsets.data() + head,
               .rows = group,
               .groups = SignGroups(shape.head_dim),
               .signs = index.Signs(layer, kv_head, i),
               .scores = scores.Row(head) + i,
               .scores_stride = scores.stride,
               .next = i + kAhead < end ? index.Signs(layer, kv_head, i + kAhead) : nullptr});
        }
        for (int64_t h = head; h < head + group; ++h) {
          const float factor =
              std::numbers::log2e_v<float> * shape.scale * queries.steps[static_cast<size_t>(h)];
          for (int64_t i = begin; i < end; ++i) scores.Row(h)[i] *= factor;
          for (int64_t i = begin; !geometry.alibi.slopes.empty() && i < end; ++i) {
            scores.Row(h)[i] += std::numbers::log2e_v<float> *
                                BiasAt(geometry.alibi, h, position, (i + 1) * kTileTokens - 1);
          }
        }
      });
}

}  // namespace

void ScoreBlocks(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                 int64_t layer, MatrixView<const float> q, int64_t position, int64_t blocks,
                 MatrixView<float> scores) {
  const int64_t parts = blocks * ScoredParts(index.shape());
  Workspace::Scope scope(exec.workspace);
  if (index.shape().signs()) {
    for (int64_t head = 0; head < scores.rows; ++head) {
      std::fill(scores.Row(head) + parts, scores.Row(head) + scores.cols,
                -std::numeric_limits<float>::infinity());
    }
    ScoreSigns(exec, geometry, index, layer, q, position, parts, scores);
  } else {
    ScoreParts(exec, geometry, index, layer, q, position, parts, scores);
  }
}

}  // namespace godwit
