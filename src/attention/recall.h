// What policies show of what matters: beside a text that is read densely, how much of each token's
// attention other policies would have seen. To measure with: it computes every weight anew.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "attention/geometry.h"
#include "attention/policy.h"

namespace godwit {

// Of one policy, sums over tokens, layers and heads.
struct Recall {
  // By the weights of dense attention; of a text with fewer tokens, all of them.
  static constexpr std::array<int64_t, 3> kHeaviest = {10, 64, 1024};
  std::array<double, kHeaviest.size()> held = {};  // the share of those tokens that is seen
  double weight = 0;                               // the share of all weight
  // How far what a head gets lies from what it gets by dense attention, as a share of its length.
  double error = 0;
  int64_t heads = 0;  // how many were added
  int64_t seen_keys = 0;
  // What was read to choose, and of how many tokens, in all layers.
  int64_t index_bytes = 0;
  int64_t tokens = 0;
};

struct Watched {
  std::unique_ptr<AttentionPolicy> policy;
  Recall* recall;  // borrowed
};

// Shows all that `dense` shows. The tokens from AskFrom on are those that are measured, in layers
// that have no window of the model's own; a sink logit takes no weight. Every watched policy sees
// the queries, and keys, of a dense text.
std::unique_ptr<AttentionPolicy> MakeRecallPolicy(const AttentionGeometry& geometry,
                                                  std::unique_ptr<AttentionPolicy> dense,
                                                  std::vector<Watched> watched);

}  // namespace godwit
