// Selection of the blocks of a long text that matter to a query, without reading most
// representatives. Those of groups of neighbouring blocks say where to look.
#pragma once

#include <cstdint>

#include "ops/blocks/select_blocks.h"

namespace godwit::ops {

// Selects as SelectBlocks does, among the blocks of some groups and those behind the last whole
// group. The groups are the `most` that get the largest shares by their representatives
// (represent_group.h). `groups` holds the whole groups before choice.last. There are more than
// `most`, which hold choice.count blocks and another group's. Returns the bytes read of both
// indexes.
//
// Where groups are bounds (QUEST), the selection begins with `most` groups. It opens more until
// none of the others could hold a block to be chosen, so that it chooses as if all were open. A
// head's shares are then those of the bounds of all groups, and otherwise those of open groups.
int64_t SelectByGroups(const Exec& exec, const AttentionShape& shape, const Alibi& alibi,
                       const IndexView& index, const IndexView& groups, int64_t most,
                       MatrixView<const float> q, int64_t position, const BlockChoice& choice,
                       MatrixView<int32_t> chosen);

}  // namespace godwit::ops
