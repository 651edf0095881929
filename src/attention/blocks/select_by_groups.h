// The blocks of a long text that matter to a query, without a look at most of its representatives:
// those of groups of neighbouring blocks say where to look.
#pragma once

#include <cstdint>

#include "attention/blocks/select_blocks.h"

namespace godwit {

// As SelectBlocks, of the blocks of some groups: of the `most` that get the largest shares by what
// stands for them (represent_group.h), and of those behind the last whole group. `groups` holds
// the whole groups before choice.last; there are more than `most`, which hold choice.count blocks
// and another group's. Result: bytes read of both.
//
// Where groups are bounds (QUEST), `most` is where it begins: it opens groups until none that is
// left could hold a block of those to be chosen, so that it chooses as if all were open. A head's
// shares are then those of the bounds of all groups, and otherwise of what is open.
int64_t SelectByGroups(const Exec& exec, const AttentionGeometry& geometry, const BlockIndex& index,
                       const BlockIndex& groups, int64_t most, int64_t layer,
                       MatrixView<const float> q, int64_t position, const BlockChoice& choice,
                       MatrixView<int32_t> chosen);

}  // namespace godwit
