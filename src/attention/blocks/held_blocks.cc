#include "attention/blocks/held_blocks.h"

#include <algorithm>
#include <cassert>

namespace godwit {
namespace {

// The keys from a tile on, of a text without dropped pages.
ops::KvView Behind(ops::KvView view, int64_t tile) {
  assert(view.dropped_begin == view.dropped_end);
  view.pages += tile * view.page_stride;
  view.slots -= tile;
  view.dropped_begin = view.dropped_end = 0;
  return view;
}

}  // namespace

void ReadHeldBlocks(const RowRun& run, int64_t layer, const BlockRange& held, int64_t block_size,
                    int64_t begin, int64_t end,
                    const std::function<void(const ops::KvView& kv, int64_t last)>& make) {
  const KvCache& cache = *run.cache;
  constexpr int64_t kPieceTokens = int64_t{1} << 16;
  const int64_t piece = (kPieceTokens - 1) / block_size + 1;
  for (; begin < end; begin += piece) {
    const int64_t last = std::min(end, begin + piece);
    cache.pool().BeginTurn();
    cache.WillRead(layer, {(held.begin + begin) * block_size, (held.begin + last) * block_size});
    make(Behind(cache.View(layer), held.begin * block_size / kTileTokens), last);
  }
}

}  // namespace godwit
