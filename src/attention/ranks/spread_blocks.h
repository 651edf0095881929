// The numbers of blocks of a context that each of several ranks reads and keeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/ranks/rank_speed.h"

namespace godwit {

// Spreads blocks over ranks: [ranks] counts, each at least one; there are at least as many blocks
// as ranks.
//
// SpreadEvenly: equally many to each, the first ones with one more.
std::vector<int64_t> SpreadEvenly(int64_t blocks, int64_t ranks);
// Spreads blocks so that the slowest rank finishes early, by their speeds of attention.
// first_together: all ranks read the first block. A rank gets no more than its memory for KV caches
// holds, beside an anchor and a question of a block's length each. That limit ends where no other
// rank has memory left.
std::vector<int64_t> SpreadBySpeed(int64_t blocks, std::span<const RankSpeed> speeds,
                                   int64_t block_bytes, bool first_together);

}  // namespace godwit
