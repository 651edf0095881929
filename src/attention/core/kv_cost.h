// The cost of a policy in memory and in a step, computed before there is a text.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"
#include "attention/ranks/text_placement.h"
#include "ops/kv_layout.h"

namespace godwit {

// The cost of a text, as KvStats has it after a step of its last token, one of an answer.
struct KvCost {
  int64_t cache_bytes;  // of keys and values held
  int64_t state_bytes;  // of the states of recurrent layers, at most
  int64_t seen_bytes;   // of keys and values that the step reads
  IndexSize index;      // derived from keys; what is read of the model's own index, too
};

// The cost of a text of `length` tokens, at least 1. It is an upper bound where a policy decides as
// it goes.
KvCost CostAt(const AttentionPolicy& policy, const AttentionGeometry& geometry,
              const KvLayout& layout, int64_t length);

// The size of what the policy derives from keys up to `position`, in pages of `layout`.
IndexSize IndexAt(const AttentionPolicy& policy, const KvLayout& layout, int64_t position);

// The ranges that this host reads of a text of `tokens`, of which other hosts may read parts
// (TextPlacement::Reads). In order, none empty.
std::vector<ops::KvRange> RangesRead(const TextPlacement& placement, int64_t tokens);

// The bytes that this host holds of the text: keys and values of RangesRead and of chunks kept from
// other hosts (RingLayout::kept), and derived data.
int64_t HeldBytes(const AttentionPolicy& policy, const TextPlacement& placement,
                  const KvLayout& layout, int64_t tokens);

}  // namespace godwit
