// How many blocks of a context each of several ranks reads and keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/rank_speed.h"

namespace godwit {

// [ranks] counts, of as many blocks at least, one for each at least.
//
// As many to each, the first ones with one more.
std::vector<int64_t> SpreadEvenly(int64_t blocks, int64_t ranks);
// So that the last to have read its own is early, by their attention. first_together: the first
// block is read by all. A rank gets no more than its memory for KV caches holds beside an anchor
// and a question of a block's length each, as long as others have some.
std::vector<int64_t> SpreadBySpeed(int64_t blocks, std::span<const RankSpeed> speeds,
                                   int64_t block_bytes, bool first_together);

}  // namespace godwit
