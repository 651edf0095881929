#include "attention/kv_cost.h"

#include <algorithm>

#include "attention/text_cache.h"

namespace godwit {

KvCost CostAt(const AttentionPolicy& policy, const AttentionGeometry& geometry,
              const KvLayout& layout, int64_t length) {
  const ops::KvRange forgotten =
      policy.Forgotten(std::max<int64_t>(0, length - TextCache::kTokensToGoBack));
  const int64_t dropped =
      std::max<int64_t>(0, forgotten.end / kernels::kTileTokens - PagesFor(forgotten.begin));
  int64_t seen = 0;
  for (int64_t layer = 0; layer < geometry.layers; ++layer) {
    seen += policy.SeenKeys(layer, length - 1);
  }
  return {.cache_bytes = (PagesFor(length) - dropped) * layout.layers * layout.page_bytes(),
          .seen_bytes = seen * layout.page_bytes() / kernels::kTileTokens,
          .index = policy.IndexAt(layout, length - 1)};
}

}  // namespace godwit
