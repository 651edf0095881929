#include "attention/blocks/block_means.h"

#include <algorithm>
#include <utility>

#include "ops/store_means.h"

namespace godwit {
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
  ops::StoreMeans(exec, means_.layout().OfLayer(layer), layer, kv, block_tokens_, {filled, blocks},
                  View(layer));
  filled_[layer] = std::max(filled, std::min(blocks, lasting));
  int64_t all = INT64_MAX;
  for (const int64_t one : layers_) all = std::min(all, this->filled(one));
  means_.Append(all - means_.length());
}

}  // namespace godwit
