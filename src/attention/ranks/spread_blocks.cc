#include "attention/ranks/spread_blocks.h"

#include <cassert>
#include <tuple>

namespace godwit {

std::vector<int64_t> SpreadEvenly(int64_t blocks, int64_t ranks) {
  std::vector<int64_t> counts;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    counts.push_back(blocks / ranks + (rank < blocks % ranks ? 1 : 0));
  }
  return counts;
}

std::vector<int64_t> SpreadBySpeed(int64_t blocks, std::span<const RankSpeed> speeds,
                                   int64_t block_bytes, bool first_together) {
  assert(blocks >= std::ssize(speeds));
  std::vector<int64_t> counts(speeds.size(), 1);
  // A rank that is not full goes first, then the earliest to have read one more, then the one with
  // fewer.
  const auto order = [&](size_t rank) {
    const RankSpeed& speed = speeds[rank];
    const int64_t reads = counts[rank] + (rank == 0 && first_together ? 0 : 1);
    const bool full = (counts[rank] + 3) * block_bytes > speed.kv_bytes;
    return std::tuple(full, static_cast<double>(reads) * speed.key_seconds, counts[rank]);
  };
  for (int64_t left = blocks - std::ssize(speeds); left > 0; --left) {
    size_t next = 0;
    for (size_t rank = 1; rank < speeds.size(); ++rank) {
      if (order(rank) < order(next)) next = rank;
    }
    ++counts[next];
  }
  return counts;
}

}  // namespace godwit
