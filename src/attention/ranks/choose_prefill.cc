#include "attention/ranks/choose_prefill.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/policies/prefill_spec.h"

namespace godwit {

namespace {

// The smallest chunk whose keys reach all ranks as fast as ranks attend to them. 0: there is none.
int64_t FedChunk(const std::vector<RankSpeed>& speeds, double key_bytes, int64_t least,
                 int64_t most) {
  // A step takes as long as its slowest rank.
  double link = INFINITY, key_seconds = 0;
  for (const RankSpeed& rank : speeds) {
    link = std::min(link, rank.worst_link);
    key_seconds = std::max(key_seconds, rank.key_seconds);
  }
  for (int64_t chunk = least; chunk <= most; chunk *= 2) {
    if (static_cast<double>(chunk) * key_seconds >= key_bytes / link) return chunk;
  }
  return 0;
}

}  // namespace

std::string ChoosePrefill(const AttentionGeometry& geometry, const PolicyOptions& options,
                          const PolicyFacts& asked, int64_t context) {
  if (options.prefill != kAutoPrefill) return options.prefill;
  if (options.ranks == nullptr || options.ranks->size() == 1) return "";
  const PrefillSpec star = ParsePrefill("star:by-speed");
  if (!asked.shows_all) return star.ToString();
  // A larger chunk takes more memory for a step's activations than a rank keeps of most contexts.
  constexpr int64_t kMaxChunk = 8 << 10;
  const KvLayout layout = LayoutOf(geometry, options.kv_type);
  const double key_bytes =
      static_cast<double>(layout.tile_bytes()) / static_cast<double>(kTileTokens);
  PrefillSpec ring = ParsePrefill("ring");
  if (options.rank_speeds.empty()) return ring.ToString();
  const int64_t fed = FedChunk(options.rank_speeds, key_bytes, ring.ring, kMaxChunk);
  ring.ring = fed > 0 ? fed : kMaxChunk;
  // Two blocks of a star are read densely. Models with windows or chunks of their own are not read
  // by blocks.
  const bool by_blocks = context > std::max(2, options.ranks->size() - 1) * star.block &&
                         std::ranges::all_of(geometry.windows, [](int64_t w) { return w == 0; });
  return fed == 0 && by_blocks ? star.ToString() : ring.ToString();
}

}  // namespace godwit
