// Cached keys and values as numbers again, for what is derived from them.
#pragma once

#include <cstdint>

#include "ops/kv_view.h"

namespace godwit::ops {

// The keys of one head in one tile, rounded or quantized as they were stored:
// keys [head_dim, stride], dimension by dimension, of which kernels::kTileTokens are written.
void ReadKeys(const KvView& kv, int64_t head_dim, int64_t head, int64_t tile, float* keys,
              int64_t stride);

// The values, where they do not lie in keys, likewise: values [head_dim, stride].
void ReadValues(const KvView& kv, int64_t head_dim, int64_t head, int64_t tile, float* values,
                int64_t stride);

}  // namespace godwit::ops
