// What a policy costs in memory and in a step, counted before there is a text.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/geometry.h"
#include "attention/policy.h"
#include "kv/kv_layout.h"

namespace godwit {

// Of a text, as KvStats has it after a step of its last token, one of an answer.
struct KvCost {
  int64_t cache_bytes;  // held, of keys and values
  int64_t seen_bytes;   // of those, read by the step
  IndexSize index;      // what is derived from them
};

// Of `length` tokens, at least 1. At most, where a policy decides as it goes.
KvCost CostAt(const AttentionPolicy& policy, const AttentionGeometry& geometry,
              const KvLayout& layout, int64_t length);

// What this host reads of a text of `tokens`, of which others may read parts
// (AttentionPolicy::Reads), in order and none of them empty.
std::vector<ops::KvRange> RangesRead(const AttentionPolicy& policy, int64_t tokens);

// What it holds of the text: keys and values of these, and of what it keeps from others
// (RingLayout::kept), and what is derived from them.
int64_t HeldBytes(const AttentionPolicy& policy, const KvLayout& layout, int64_t tokens);

}  // namespace godwit
