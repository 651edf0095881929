#include "attention/core/kv_cost.h"

#include <algorithm>

#include "attention/core/text_cache.h"

namespace godwit {

KvCost CostAt(const AttentionPolicy& policy, const AttentionGeometry& geometry,
              const KvLayout& layout, int64_t length) {
  const ops::KvRange forgotten =
      policy.Forgotten(std::max<int64_t>(0, length - TextCache::kMaxRollbackTokens));
  const int64_t dropped =
      std::max<int64_t>(0, forgotten.end / kTileTokens - PagesFor(forgotten.begin));
  int64_t seen_bytes = 0;
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    const int64_t index_bytes = layout.index_places.empty() ? layout.index_bytes() : 0;
    const int64_t tile_bytes = layout.places.empty() ? layout.page_bytes() - index_bytes
                                                     : layout.OfLayer(layer).tile_bytes();
    const int64_t times = geometry.readers.empty() ? 1 : 1 + geometry.readers[layer];
    seen_bytes += times * policy.SeenKeys(layer, length - 1) * tile_bytes / kTileTokens;
  }
  IndexSize index = IndexAt(policy, layout, length - 1);
  // The model's own choice reads all index keys, which are held as keys.
  if (length > geometry.ChoosesFrom()) {
    index.read_bytes += PagesFor(length) * layout.index_bytes() * geometry.index_layers;
  }
  return {.cache_bytes = (PagesFor(length) - dropped) * layout.pages() * layout.page_bytes(),
          .state_bytes = layout.states.BytesFor(length),
          .seen_bytes = seen_bytes,
          .index = index};
}

IndexSize IndexAt(const AttentionPolicy& policy, const KvLayout& layout, int64_t position) {
  const DerivedIndex* const index = policy.index();
  return index == nullptr ? IndexSize() : index->SizeAt(layout, position);
}

std::vector<ops::KvRange> RangesRead(const TextPlacement& placement, int64_t tokens) {
  std::vector<ops::KvRange> ranges;
  for (int64_t length = 0; length < tokens;) {
    const ops::KvRange read = placement.Reads(length);
    if (read.begin < tokens) ranges.push_back({read.begin, std::min(read.end, tokens)});
    length = read.end;
  }
  return ranges;
}

int64_t HeldBytes(const AttentionPolicy& policy, const TextPlacement& placement,
                  const KvLayout& layout, int64_t tokens) {
  int64_t pages = PagesFor(std::min(placement.kept_by_all(), tokens));
  int64_t counted = pages;  // tiles counted so far, from the text's beginning
  for (const auto& [begin, end] : RangesRead(placement, tokens)) {
    const int64_t first = std::max(begin / kTileTokens, counted);
    if (PagesFor(end) <= first) continue;
    counted = PagesFor(end);
    pages += counted - first;
  }
  const int64_t keys = layout.BytesFor(pages * kTileTokens);
  return keys + IndexAt(policy, layout, tokens - 1).held_bytes;
}

}  // namespace godwit
