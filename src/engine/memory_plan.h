// Whether a context fits into this machine, said before memory is taken.
#pragma once

#include <cstdint>

#include "attention/geometry.h"
#include "tensor/dtype.h"

namespace godwit {

// The longest context whose KV cache fits into `free_bytes`, in tokens.
int64_t LargestContext(const AttentionGeometry& geometry, DType kv_type, int64_t free_bytes);

// Throws Error(kMemory) with the numbers if the KV cache of `tokens` more tokens does not fit into
// the memory that is available now.
void CheckKvFits(const AttentionGeometry& geometry, DType kv_type, int64_t tokens);

}  // namespace godwit
