#include "ops/gpu/near_tiles.h"

#include <cassert>
#include <memory>
#include <span>

namespace godwit::ops {
namespace {

using kernels::kTileTokens;

// The place of the first part from `tile` on.
size_t PlaceOfTile(std::span<const TilePart> parts, int64_t tile) {
  return static_cast<size_t>(std::ranges::lower_bound(parts, tile, {}, &TilePart::tile) -
                             parts.begin());
}

// Whether a list has every near tile, and hides no key of them that the last row may see.
[[maybe_unused]] bool ShowsNear(std::span<const TilePart> parts, const NearCut& cut,
                                int64_t last_position) {
  const auto shown = [&](size_t at, int64_t tile) {
    if (at >= parts.size() || parts[at].tile != tile) return false;
    const int64_t seen = std::min(kTileTokens, last_position + 1 - tile * kTileTokens);
    return parts[at].begin == 0 && parts[at].end >= seen && parts[at].hidden == 0;
  };
  for (int64_t tile = 0; tile < cut.sinks; ++tile) {
    if (!shown(static_cast<size_t>(tile), tile)) return false;
  }
  const size_t window = PlaceOfTile(parts, cut.window);
  for (int64_t tile = cut.window; tile < cut.end; ++tile) {
    if (!shown(window + static_cast<size_t>(tile - cut.window), tile)) return false;
  }
  return true;
}

}  // namespace

NearCut CutNear(const NearTiles& near, const AttentionRows& rows) {
  assert(near.window > 0 && rows.sources.size() == 1);
  const int64_t last = rows.position + rows.rows - 1;
  assert(rows.position / kTileTokens == last / kTileTokens);
  const Visible& visible = rows.sources.front().visible;
  assert(visible.end > last && visible.block == INT64_MAX);
  const int64_t window = near.WindowAt(rows.position);
  const bool from_the_first = visible.begin == 0 && visible.window == INT64_MAX;
  return {.sinks = from_the_first ? std::min(near.sinks, window) : 0,
          .window = window,
          .end = last / kTileTokens + 1};
}

AttentionRows FarOf(Workspace& workspace, const NearTiles& near, const AttentionRows& rows) {
  const NearCut cut = CutNear(near, rows);
  const AttentionSource& all = rows.sources.front();
  const auto sources = workspace.Matrix<AttentionSource>(1, 1).RowSpan(0);
  AttentionSource& far = *std::construct_at(&sources.front(), all);
  if (all.parts.empty()) {
    far.visible.begin = std::max(far.visible.begin, cut.sinks * kTileTokens);
    far.visible.end = cut.window * kTileTokens;
  } else {
    const auto lists =
        workspace.Matrix<std::span<const TilePart>>(1, std::ssize(all.parts)).RowSpan(0);
    for (size_t head = 0; head < lists.size(); ++head) {
      const std::span<const TilePart> parts = all.parts[head];
      assert(ShowsNear(parts, cut, rows.position + rows.rows - 1));
      const size_t begin = PlaceOfTile(parts, cut.sinks), end = PlaceOfTile(parts, cut.window);
      std::construct_at(&lists[head], parts.subspan(begin, end - begin));
    }
    far.parts = lists;
  }
  AttentionRows result = rows;
  result.sources = sources;
  return result;
}

}  // namespace godwit::ops
