// How fast the ranks are that share a text, measured before they begin.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/geometry.h"
#include "dist/communicator.h"
#include "ops/exec.h"
#include "tensor/dtype.h"

namespace godwit {

struct RankSpeed {
  // Bytes a second to and from another rank, at once: that it reaches best, and worst.
  double best_link;
  double worst_link;
  // That a layer takes for a row and a key which it sees, where many rows see it.
  double key_seconds;
  int64_t kv_bytes = 0;  // that it has for KV caches
};

// [ranks], the same on all, which call this together. None for one alone. In some milliseconds for
// each rank, by keys of that type. kv_bytes: of this rank.
std::vector<RankSpeed> MeasureRanks(Communicator& ranks, const Exec& exec,
                                    const AttentionGeometry& geometry, DType kv_type,
                                    int64_t kv_bytes);

// A sentence for each rank, by its name, that all others wait for: it takes three times as long as
// half of them.
std::vector<std::string> SlowRanks(const Communicator& ranks, std::span<const RankSpeed> speeds);

}  // namespace godwit
