// BlocksGeometry: the place of blocks for a token, by its position alone. It has the blocks that a
// token sees anyway, the tokens and layers that choose others, and the resulting tiles.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/blocks/block_index.h"
#include "attention/blocks/blocks_spec.h"
#include "attention/core/geometry.h"
#include "ops/attention.h"

namespace godwit {

// The blocks [begin, end) of a text: all of it, or those that one of several ranks holds and shows.
struct BlockRange {
  int64_t begin = 0;
  int64_t end = INT64_MAX;

  // The number of its blocks before block `last`.
  int64_t CountBefore(int64_t last) const {
    return std::max<int64_t>(0, std::min(last, end) - begin);
  }
};

struct BlocksGeometry {
  BlocksGeometry(const AttentionGeometry& attention_geometry, const BlocksSpec& blocks_spec);

  AttentionGeometry attention;  // its shape is that of the layers that choose
  BlocksSpec spec;
  int64_t initial;                // blocks at the beginning that every token sees
  std::vector<int64_t> choosing;  // layers that do not see all
  // The layers that choose for themselves, and for each layer the place of its chooser in that
  // list.
  std::vector<int64_t> leaders;
  std::vector<size_t> leader_of;
  std::vector<size_t> first_reader;  // ChooserOf of each leader's first reader

  // Whether a layer chooses blocks. A layer with a window or chunks of the model's own is short
  // anyway.
  bool Chooses(int64_t layer) const {
    return layer >= spec.dense_layer_num && attention.windows[layer] == 0;
  }
  size_t LeaderOf(int64_t layer) const { return leader_of[layer]; }
  bool Leads(int64_t layer) const { return leaders[LeaderOf(layer)] == layer; }
  // The number of choosers of a token: leaders, then the readers of their keys, which choose by
  // queries of their own. Readers of other layers share the choice of the layer.
  int64_t choosers = 0;
  // The place of the chooser for a layer, or for a reader of its keys (RunQueries::reader).
  size_t ChooserOf(int64_t layer, int64_t reader) const {
    const size_t leader = LeaderOf(layer);
    return reader == 0 || !Leads(layer) ? leader
                                        : first_reader[leader] + static_cast<size_t>(reader - 1);
  }
  // The number of heads, or groups of them, that choose for themselves.
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
  // The shape of the index. Every row that chooses has learnt_blocks before its window.
  ops::BlockShape Shape() const;

  // The share of a row's second_block_count that is chosen in `part`, in proportion to its number
  // of blocks. The row's window begins at `local`, behind first_sparse(). Parts that make up a text
  // have all of them together, and no share exceeds its part's blocks.
  int64_t ShareOf(const BlockRange& part, int64_t local) const;

  // The most tiles that a row looks at, with so many chosen blocks and a window from block `local`
  // on.
  int64_t PartsOf(int64_t chosen, int64_t local, int64_t position) const;
  // Lists the tiles of a row that lie in `here`, and returns their number. chosen: blocks in
  // `here`, -1 behind the last.
  size_t ListParts(const BlockRange& here, std::span<const int32_t> chosen, int64_t local,
                   int64_t position, std::span<ops::TilePart> parts) const;
};

}  // namespace godwit
