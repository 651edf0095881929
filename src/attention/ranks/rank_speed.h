// The speeds of the ranks that share a text, measured before they begin.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/core/geometry.h"
#include "dist/communicator.h"
#include "ops/exec.h"
#include "tensor/dtype.h"

namespace godwit {

struct RankSpeed {
  // The bytes a second to and from another rank at once, with the best and the worst of them.
  double best_link;
  double worst_link;
  // The seconds of a layer for a row and a key that it sees, where many rows see the key.
  double key_seconds;
  int64_t kv_bytes = 0;  // its bytes for KV caches
};

// Measures the ranks, in some milliseconds for each, by keys of that type. All ranks call it
// together and get the same [ranks] speeds; one alone gets none. kv_bytes: of this rank.
std::vector<RankSpeed> MeasureRanks(Communicator& ranks, const Exec& exec,
                                    const AttentionGeometry& geometry, DType kv_type,
                                    int64_t kv_bytes);

// The speeds of groups of `group` neighbours, each as slow as the slowest of them; none if there is
// one group or no speed.
std::vector<RankSpeed> SpeedsOfGroups(std::span<const RankSpeed> speeds, int64_t group);

// A sentence for each rank for which all others wait, by its name: it takes three times as long as
// half of them.
std::vector<std::string> SlowRanks(const Communicator& ranks, std::span<const RankSpeed> speeds);

}  // namespace godwit
