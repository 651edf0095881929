#include "attention/blocks/block_means.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kv/read_keys.h"

namespace godwit {
namespace {

using kernels::kTileTokens;

// The mean [head_dim] of a block. `read` gives the numbers [head_dim, kTileTokens] of a tile.
void MeanOf(int64_t first_tile, int64_t tiles, int64_t head_dim, const auto& read, float* numbers,
            float* mean) {
  std::fill_n(mean, head_dim, 0.0f);
  for (int64_t tile = first_tile; tile < first_tile + tiles; ++tile) {
    read(tile, numbers);
    for (int64_t d = 0; d < head_dim; ++d) {
      const float* const of_tokens = numbers + d * kTileTokens;
      mean[d] = std::accumulate(of_tokens, of_tokens + kTileTokens, mean[d]);
    }
  }
  for (int64_t d = 0; d < head_dim; ++d) mean[d] /= static_cast<float>(tiles * kTileTokens);
}

}  // namespace

BlockMeans::BlockMeans(std::shared_ptr<KvPool> pool, int64_t block_tokens,
                       std::vector<int64_t> layers)
    : block_tokens_(block_tokens),
      layers_(std::move(layers)),
      filled_(pool->layout().layers),
      means_(std::move(pool)) {}

BlockMeans::BlockMeans(const BlockMeans& other)
    : block_tokens_(other.block_tokens_),
      layers_(other.layers_),
      filled_(other.filled_),
      means_(other.means_.Fork()) {
  Truncate(means_.length());
}

void BlockMeans::Truncate(int64_t blocks) {
  means_.Truncate(std::min(means_.length(), blocks));
  // An unended step may have filled some layers further. That memory is given back.
  for (int64_t& filled : filled_) filled = std::min(filled, means_.length());
}

void BlockMeans::Reserve(int64_t blocks) {
  if (blocks > means_.length()) means_.Reserve(blocks - means_.length());
}

void BlockMeans::Fill(const Exec& exec, int64_t layer, const ops::KvView& kv, int64_t blocks,
                      int64_t lasting) {
  const int64_t filled = this->filled(layer);
  if (blocks <= filled) return;
  const KvLayout& layout = means_.layout();
  const int64_t dim = layout.head_dim, tiles = block_tokens_ / kTileTokens;
  Workspace::Scope scope(exec.workspace);
  const auto scratch = exec.workspace.Matrix<float>(exec.pool.threads(), dim * (kTileTokens + 2));
  // A core fills all means of one tile, so no two cores write into one line of memory.
  const int64_t first_tile = filled / kTileTokens;
  const int64_t tasks = (PagesFor(blocks) - first_tile) * layout.kv_heads;
  exec.Parallel(tasks, [&](int64_t task, int worker) {
    const int64_t head = task % layout.kv_heads, tile = first_tile + task / layout.kv_heads;
    float* const key = scratch.Row(worker);
    float* const value = layout.values_in_keys ? nullptr : key + dim;
    float* const numbers = key + 2 * dim;
    const int64_t end = std::min(blocks, (tile + 1) * kTileTokens);
    if (layout.centred) means_.WriteCentre(exec.kernels, layer, head, tile, {});
    for (int64_t block = std::max(filled, tile * kTileTokens); block < end; ++block) {
      const auto mean_of = [&](auto read, float* mean) {
        MeanOf(
            block * tiles, tiles, dim,
            [&](int64_t t, float* to) { read(kv, dim, head, t, to, kTileTokens); }, numbers, mean);
      };
      mean_of(ReadKeys, key);
      if (value != nullptr) mean_of(ReadValues, value);
      means_.Write(exec.kernels, layer, head, block, key, value);
    }
  });
  filled_[layer] = std::max(filled, std::min(blocks, lasting));
  int64_t all = INT64_MAX;
  for (const int64_t one : layers_) all = std::min(all, this->filled(one));
  means_.Append(all - means_.length());
}

}  // namespace godwit
