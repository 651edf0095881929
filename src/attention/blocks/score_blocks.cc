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

// The queries of all heads as tables of what four signs add up to.
struct SignTables {
  static constexpr float kHalf = 63;  // the largest sum of a group, up or down
  MatrixView<uint8_t> tables;         // [heads, groups * 32]
  std::span<int32_t> offsets;
  std::span<float> steps;

  SignTables(const Exec& exec, MatrixView<const float> q)
      : tables(exec.workspace.Matrix<uint8_t>(q.rows, SignGroups(q.cols) * 32)),
        offsets(exec.workspace.Matrix<int32_t>(1, q.rows).RowSpan(0)),
        steps(exec.workspace.Matrix<float>(1, q.rows).RowSpan(0)) {
    for (int64_t h = 0; h < q.rows; ++h) FillHead(q.RowSpan(h), static_cast<size_t>(h));
  }

  void FillHead(std::span<const float> q, size_t head) {
    float largest = 0;
    for (size_t d = 0; d < q.size(); d += 4) {
      float sum = 0;
      for (size_t i = d; i < std::min(d + 4, q.size()); ++i) sum += std::abs(q[i]);
      largest = std::max(largest, sum);
    }
    const bool usable = largest >= 0x1p-120f && std::isfinite(largest);
    const float factor = usable ? kHalf / largest : 0;
    steps[head] = usable ? largest / kHalf : 0;
    uint8_t* table = tables.Row(static_cast<int64_t>(head));
    const auto groups = static_cast<size_t>(tables.cols) / 32;
    offsets[head] = static_cast<int32_t>(kHalf) * static_cast<int32_t>(groups);
    for (size_t g = 0; g < groups; ++g, table += 32) {
      for (unsigned pattern = 0; pattern < 16; ++pattern) {
        float sum = 0;
        for (size_t i = 0; i < 4 && 4 * g + i < q.size(); ++i) {
          sum += (pattern >> i & 1) != 0 ? q[4 * g + i] : -q[4 * g + i];
        }
        const float entry = std::clamp(std::nearbyint(sum * factor), -kHalf, kHalf) + kHalf;
        table[pattern] = table[16 + pattern] = static_cast<uint8_t>(entry);
      }
    }
  }
};

void ScoreSigns(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                int64_t layer, MatrixView<const float> q, int64_t position, int64_t tiles,
                MatrixView<float> scores) {
  const ops::AttentionShape& shape = geometry.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  const SignTables queries(exec, q);
  ForTiles(
      exec, shape.kv_heads, tiles, kTaskTiles * 8,
      [&](int64_t kv_head, int64_t begin, int64_t end, int /*worker*/) {
        const int64_t head = kv_head * group;
        for (int64_t i = begin; i < end; ++i) {
          const SignTile tile = index.Signs(layer, kv_head, i);
          exec.kernels.score_signs(
              {.tables = queries.tables.Row(head),
               .offsets = queries.offsets.data() + head,
               .rows = group,
               .groups = SignGroups(shape.head_dim),
               .signs = tile.signs,
               .scales = tile.scales,
               .keys = kTileTokens,
               .scores = scores.Row(head) + i,
               .scores_stride = scores.stride,
               .next = i + kAhead < end ? index.Signs(layer, kv_head, i + kAhead).signs : nullptr});
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
