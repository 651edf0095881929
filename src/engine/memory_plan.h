// Whether a context fits into memory, said before memory is taken.
#pragma once

#include <cstdint>

#include "kv/kv_layout.h"

namespace godwit {

// The longest context whose KV cache fits into `free_bytes`, in tokens.
int64_t LargestContext(const KvLayout& layout, int64_t free_bytes);

// Throws Error(kMemory) with the numbers if the KV cache of `tokens` tokens is larger than
// `budget_bytes`, which all caches of an engine may take together.
void CheckKvFits(const KvLayout& layout, int64_t tokens, int64_t budget_bytes);

}  // namespace godwit
