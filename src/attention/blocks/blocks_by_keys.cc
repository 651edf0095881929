#include "attention/blocks/blocks_by_keys.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "ops/blocks/choose_by_keys.h"

namespace godwit {
namespace {

// Announces the reading of blocks [choices, blocks].
void WillWeigh(const BlocksGeometry& geometry, const RowRun& run, int64_t layer,
               MatrixView<const int32_t> blocks) {
  if (run.cache->pool().file() == nullptr) return;
  const int64_t heads = geometry.attention.shape.kv_heads / blocks.rows;
  const int64_t size = geometry.spec.block_size;
  std::vector<ops::TilePart> parts;
  for (int64_t i = 0; i < blocks.rows; ++i) {
    parts.clear();
    for (const int32_t block : blocks.RowSpan(i)) {
      const int64_t end = ((block + 1) * size - 1) / kTileTokens + 1;
      int64_t tile = block * size / kTileTokens;
      if (!parts.empty() && parts.back().tile == tile) ++tile;  // a neighbour's tile
      for (; tile < end; ++tile) {
        parts.push_back({.tile = tile, .begin = 0, .end = static_cast<int32_t>(kTileTokens)});
      }
    }
    run.cache->WillRead(layer, parts, i * heads, (i + 1) * heads);
  }
}

}  // namespace

int64_t ChooseNamedByKeys(const BlocksGeometry& geometry, const RowRun& run, int64_t layer,
                          const RunQueries& queries, MatrixView<const int32_t> blocks,
                          MatrixView<int32_t> chosen) {
  const BlocksSpec& spec = geometry.spec;
  if (spec.top_p == 1 && blocks.cols <= chosen.cols) {
    for (int64_t i = 0; i < chosen.rows; ++i) {
      std::ranges::fill(chosen.RowSpan(i), -1);
      std::ranges::copy(blocks.RowSpan(i), chosen.Row(i));
    }
    return 0;
  }
  // A block that is still being filled is not weighed.
  const int64_t initial = geometry.initial, local = geometry.FirstLocal(run.position);
  const int64_t full = (run.position + 1) / spec.block_size;
  const int64_t seen = initial + std::max<int64_t>(0, full - local);
  const auto all = queries.exec.workspace.Matrix<int32_t>(blocks.rows, seen + blocks.cols);
  for (int64_t i = 0; i < all.rows; ++i) {
    std::iota(all.Row(i), all.Row(i) + initial, 0);
    std::iota(all.Row(i) + initial, all.Row(i) + seen, static_cast<int32_t>(local));
    std::ranges::copy(blocks.RowSpan(i), all.Row(i) + seen);
  }
  WillWeigh(geometry, run, layer, all);
  ops::ChooseByKeys(queries.exec, geometry.attention.shape, geometry.attention.alibi,
                    run.cache->View(layer), spec.block_size, queries.q, run.position, all,
                    {.seen = seen, .least = spec.least_block_count, .top_p = spec.top_p}, chosen);
  return KeyBytes(geometry, run, all.cols);
}

int64_t KeyBytes(const BlocksGeometry& geometry, const RowRun& run, int64_t blocks) {
  const KvLayout& layout = run.cache->layout();
  const int64_t tile_bytes = layout.places.empty()
                                 ? layout.page_bytes()
                                 : layout.OfLayer(geometry.choosing.front()).tile_bytes();
  return blocks * geometry.spec.block_size * tile_bytes / (2 * kTileTokens);
}

}  // namespace godwit
