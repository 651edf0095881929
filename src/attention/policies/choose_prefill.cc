#include "attention/policies/choose_prefill.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/policies/prefill_spec.h"

namespace godwit {

std::string ChoosePrefill(const AttentionGeometry& geometry, const PolicyOptions& options) {
  if (options.prefill != kAutoPrefill) return options.prefill;
  if (options.ranks == nullptr || options.ranks->size() == 1) return "";
  const std::string kStar = "star:by-speed";
  if (options.spec != "dense") return kStar;
  // A larger one takes more memory for a step's activations than a rank keeps of most contexts.
  constexpr int64_t kMostChunk = 8 << 10;
  const KvLayout layout = LayoutOf(geometry, options.kv_type);
  const double key_bytes = static_cast<double>(layout.kv_heads * layout.head_bytes()) /
                           static_cast<double>(kernels::kTileTokens);
  // A step takes as long as its slowest rank.
  double link = INFINITY, key_seconds = 0;
  for (const RankSpeed& rank : options.rank_speeds) {
    link = std::min(link, rank.worst_link);
    key_seconds = std::max(key_seconds, rank.key_seconds);
  }
  PrefillSpec ring = ParsePrefill("ring");
  if (!options.rank_speeds.empty()) {
    while (static_cast<double>(ring.ring) * key_seconds < key_bytes / link) {
      // A model that looks back by windows of its own is not read by blocks.
      const bool by_blocks =
          std::ranges::all_of(geometry.windows, [](int64_t w) { return w == 0; });
      if (ring.ring == kMostChunk) return by_blocks ? kStar : ring.ToString();
      ring.ring *= 2;
    }
  }
  return ring.ToString();
}

}  // namespace godwit
