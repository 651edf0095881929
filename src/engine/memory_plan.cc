#include "engine/memory_plan.h"

#include <algorithm>

#include "attention/core/kv_cost.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/machine_memory.h"

namespace godwit {

int64_t KvBytes(const KvLayout& layout, const AttentionPolicy* policy, int64_t tokens) {
  const int64_t index =
      policy == nullptr || tokens < 1 ? 0 : IndexAt(*policy, layout, tokens - 1).held_bytes;
  return CheckedAdd(layout.BytesFor(tokens), index + layout.states.BytesFor(tokens))
      .value_or(INT64_MAX);
}

int64_t LargestContext(const KvLayout& layout, const AttentionPolicy* policy, int64_t free_bytes) {
  int64_t fit = 0, beyond = std::max<int64_t>(0, free_bytes) / layout.BytesFor(1) + 1;  // pages
  while (beyond - fit > 1) {
    const int64_t pages = fit + (beyond - fit) / 2;
    const bool fits = KvBytes(layout, policy, pages * kTileTokens) <= free_bytes;
    (fits ? fit : beyond) = pages;
  }
  return fit * kTileTokens;
}

void CheckKvFits(const KvLayout& layout, const AttentionPolicy* policy, int64_t tokens,
                 int64_t budget_bytes) {
  const int64_t bytes = KvBytes(layout, policy, tokens);
  if (bytes <= budget_bytes) return;
  Throw(ErrorKind::kMemory,
        "the KV cache of {} tokens in {} takes {}, and {} are available for KV caches, enough for "
        "{} tokens",
        tokens, Name(layout.dtype), FormatBytes(bytes), FormatBytes(budget_bytes),
        LargestContext(layout, policy, budget_bytes));
}

void CheckIndexFits(const KvLayout& layout, const AttentionPolicy& policy, int64_t tokens,
                    int64_t budget_bytes) {
  const int64_t index = tokens < 1 ? 0 : IndexAt(policy, layout, tokens - 1).held_bytes;
  const int64_t states = layout.states.BytesFor(tokens);
  if (index + states <= budget_bytes) return;
  if (states > 0) {
    Throw(ErrorKind::kMemory,
          "the index of {} and the states of recurrent layers for {} tokens take {} of memory, and "
          "{} are available for KV caches",
          policy.facts().name, tokens, FormatBytes(index + states), FormatBytes(budget_bytes));
  }
  Throw(ErrorKind::kMemory,
        "the index of {} for {} tokens takes {} of memory, and {} are available for KV caches",
        policy.facts().name, tokens, FormatBytes(index), FormatBytes(budget_bytes));
}

}  // namespace godwit
