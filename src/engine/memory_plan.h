// Memory plans: whether a context fits into memory, before memory is taken.
#pragma once

#include <cstdint>

#include "attention/core/policy.h"
#include "ops/kv_layout.h"

namespace godwit {

// The bytes of the KV cache of `tokens` tokens that are asked about. They include the states of
// recurrent layers, and the data that the policy derives from keys; null: none.
int64_t KvBytes(const KvLayout& layout, const AttentionPolicy* policy, int64_t tokens);

// The longest context whose KV cache fits into `free_bytes`, in tokens.
int64_t LargestContext(const KvLayout& layout, const AttentionPolicy* policy, int64_t free_bytes);

// Throws Error(kMemory) with the numbers if the KV cache of `tokens` tokens is larger than
// `budget_bytes`, which all caches of an engine may take together.
void CheckKvFits(const KvLayout& layout, const AttentionPolicy* policy, int64_t tokens,
                 int64_t budget_bytes);

// Throws Error(kMemory) as CheckKvFits, for states and the data that the policy derives from keys,
// where the keys themselves lie in a file.
void CheckIndexFits(const KvLayout& layout, const AttentionPolicy& policy, int64_t tokens,
                    int64_t budget_bytes);

}  // namespace godwit
