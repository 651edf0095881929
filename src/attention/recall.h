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
  // Sums over the heads of a layer that share a KV head, `heads` of which were added; `held` is the
  // share of the kNamed heaviest tokens that is seen, the others are as below.
  struct Group {
    double held = 0;
    double weight = 0;
    double error = 0;
    int64_t heads = 0;
  };
  // One group as it is named to people, by layer and KV head; means.
  struct Named {
    int64_t layer, kv_head;
    double held, weight, error;
  };

  // By the weights of dense attention; of a text with fewer tokens, all of them.
  static constexpr std::array<int64_t, 3> kHeaviest = {10, 64, 1024};
  static constexpr size_t kNamed = 1;              // of kHeaviest: that by which heads are named
  std::array<double, kHeaviest.size()> held = {};  // the share of those tokens that is seen
  double weight = 0;                               // the share of all weight
  // How far what a head gets lies from what it gets by dense attention, as a share of its length.
  double error = 0;
  int64_t heads = 0;  // how many were added
  int64_t seen_keys = 0;
  // What was read to choose, and of how many tokens, in all layers.
  int64_t index_bytes = 0;
  int64_t tokens = 0;
  std::vector<Group> groups;  // [layers, KV heads]; of layers that are not measured without heads

  // All groups that were measured, by layer and KV head.
  std::vector<Named> Groups(int64_t kv_heads) const;
  // Those that hold least, the worst first, at most `most`; the earlier of equals.
  std::vector<Named> Worst(int64_t kv_heads, size_t most) const;
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
