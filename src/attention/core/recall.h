// Recall: the share of each token's dense attention that other policies would have seen, beside a
// text that is read densely. It is for measurements only: it computes every weight anew.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"

namespace godwit {

// The sums of one policy over tokens, layers and heads.
struct Recall {
  // Sums over the heads of a layer that share a KV head, `heads` in number. `held` is the share of
  // the kNamed heaviest tokens that is seen; the others are as below.
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

  // The numbers of heaviest tokens, by the weights of dense attention; all tokens of a shorter
  // text.
  static constexpr std::array<int64_t, 3> kHeaviest = {10, 64, 1024};
  static constexpr size_t kNamed = 1;              // index in kHeaviest by which heads are named
  std::array<double, kHeaviest.size()> held = {};  // the share of the heaviest tokens that is seen
  double weight = 0;                               // the share of all weight
  // The distance of a head's result from that of dense attention, as a share of its length.
  double error = 0;
  int64_t heads = 0;  // the number of heads added
  int64_t seen_keys = 0;
  // The bytes read to choose, and the number of tokens for it, in all layers.
  int64_t index_bytes = 0;
  int64_t tokens = 0;
  std::vector<Group> groups;  // [layers, KV heads]; layers that are not measured have 0 heads

  // All groups that were measured, by layer and KV head.
  std::vector<Named> Groups(int64_t kv_heads) const;
  // The groups that hold least, the worst first, at most `most`; the earlier of equals.
  std::vector<Named> Worst(int64_t kv_heads, size_t most) const;
};

struct MeasuredPolicy {
  std::unique_ptr<AttentionPolicy> policy;
  Recall* recall;  // borrowed
};

// A policy that shows all that `dense` shows, and measures the tokens from SetQuestion on. It
// measures layers that have no window of the model's own; a sink logit takes no weight. Every
// watched policy sees the queries and keys of a dense text.
std::unique_ptr<AttentionPolicy> MakeRecallPolicy(const AttentionGeometry& geometry,
                                                  std::unique_ptr<AttentionPolicy> dense,
                                                  std::vector<MeasuredPolicy> measured);

}  // namespace godwit
