#include "ops/store_means.h"

#include <algorithm>
#include <numeric>

#include "ops/read_keys.h"
#include "ops/store_row.h"

namespace godwit::ops {
namespace {

// The mean [head_dim] of tiles. `read` gives the numbers [head_dim, kTileTokens] of a tile.
void MeanOfTiles(KvRange tiles, int64_t head_dim, const auto& read, float* numbers, float* mean) {
  std::fill_n(mean, head_dim, 0.0f);
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    read(tile, numbers);
    for (int64_t d = 0; d < head_dim; ++d) {
      const float* const of_tokens = numbers + d * kTileTokens;
      mean[d] = std::accumulate(of_tokens, of_tokens + kTileTokens, mean[d]);
    }
  }
  const auto tokens = static_cast<float>((tiles.end - tiles.begin) * kTileTokens);
  for (int64_t d = 0; d < head_dim; ++d) mean[d] /= tokens;
}

}  // namespace

void StoreMeans(const Exec& exec, const KvLayout& layout, int64_t layer, const KvView& from,
                int64_t block_tokens, KvRange blocks, const KvView& to) {
  const int64_t dim = layout.head_dim, tiles = block_tokens / kTileTokens;
  Workspace::Scope scope(exec.workspace);
  const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), dim * (kTileTokens + 2));
  // A core fills all means of one tile, so no two cores write into one line of memory.
  const int64_t first_tile = blocks.begin / kTileTokens;
  const int64_t tasks = (PagesFor(blocks.end) - first_tile) * layout.kv_heads;
  exec.Parallel(tasks, [&](int64_t task, int worker) {
    const int64_t head = task % layout.kv_heads, tile = first_tile + task / layout.kv_heads;
    float* const key = scratch.Row(worker);
    float* const value = layout.values_in_keys ? nullptr : key + dim;
    float* const numbers = key + 2 * dim;
    const int64_t end = std::min(blocks.end, (tile + 1) * kTileTokens);
    if (layout.centred) StoreCentre(exec.kernels, layout, to, head, tile, {});
    for (int64_t block = std::max(blocks.begin, tile * kTileTokens); block < end; ++block) {
      const auto mean_of = [&](auto read, float* mean) {
        MeanOfTiles(
            {block * tiles, (block + 1) * tiles}, dim,
            [&](int64_t t, float* out) { read(from, dim, head, t, out, kTileTokens); }, numbers,
            mean);
      };
      mean_of(ReadKeys, key);
      if (value != nullptr) mean_of(ReadValues, value);
      StoreRow(exec.kernels, layout, to, layer, head, block, key, value);
    }
  });
}

}  // namespace godwit::ops
