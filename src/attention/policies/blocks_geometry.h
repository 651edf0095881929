// Where the blocks of a text lie for a token, by its position alone: those that it sees anyway, the
// tokens and layers that choose others, and the tiles that all these come to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/blocks/block_index.h"
#include "attention/geometry.h"
#include "attention/policies/blocks_spec.h"
#include "ops/attention.h"

namespace godwit {

// The blocks [begin, end) of a text: all of it, or what one of several ranks holds and shows.
struct BlockRange {
  int64_t begin = 0;
  int64_t end = INT64_MAX;

  // Of its blocks, those before block `last`.
  int64_t CountBefore(int64_t last) const {
    return std::max<int64_t>(0, std::min(last, end) - begin);
  }
};

struct BlocksGeometry {
  BlocksGeometry(const AttentionGeometry& attention_geometry, const BlocksSpec& blocks_spec);

  AttentionGeometry attention;
  BlocksSpec spec;
  int64_t initial;                // blocks
  std::vector<int64_t> choosing;  // layers that do not see all
  // Layers that choose for themselves, and for each layer the place of the one that does so for it.
  std::vector<int64_t> leaders;
  std::vector<size_t> leader_of;

  // A layer with a window or chunks of the model's own is short anyway.
  bool Chooses(int64_t layer) const {
    return layer >= spec.dense_layer_num && attention.windows[static_cast<size_t>(layer)] == 0;
  }
  size_t LeaderOf(int64_t layer) const { return leader_of[static_cast<size_t>(layer)]; }
  bool Leads(int64_t layer) const { return leaders[LeaderOf(layer)] == layer; }
  // Heads, or groups of them, that choose for themselves.
  int64_t choices() const { return spec.separate ? attention.shape.kv_heads : 1; }

  // The first block of the window of a row.
  int64_t FirstLocal(int64_t position) const {
    return std::max<int64_t>(0, position + 1 - spec.local_windows_len) / spec.block_size;
  }
  // The first position that has more blocks before its window than it may choose.
  int64_t first_sparse() const {
    const int64_t blocks = initial + spec.second_block_count + 1;
    return blocks * spec.block_size + spec.local_windows_len - 1;
  }
  // Of the index: whoever chooses has so many blocks before its window.
  BlockShape Shape() const;

  // Of the second_block_count of a row whose window begins at `local`, behind first_sparse(), those
  // that are chosen among its blocks in `part`: in proportion to these. Parts that make up a text
  // have all of them together, and none has more than there are blocks.
  int64_t ShareOf(const BlockRange& part, int64_t local) const;

  // Tiles that a row looks at, at most, with so many chosen blocks and a window from block `local`
  // on.
  int64_t PartsOf(int64_t chosen, int64_t local, int64_t position) const;
  // Those that lie in `here`, and their number. chosen: blocks in `here`, -1 behind the last.
  size_t ListParts(const BlockRange& here, std::span<const int32_t> chosen, int64_t local,
                   int64_t position, std::span<ops::TilePart> parts) const;
};

}  // namespace godwit
