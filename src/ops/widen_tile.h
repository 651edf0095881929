// Tiles of 4 bits (kernel_table.h, WidenedType) as the attention kernels read them.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "ops/attention.h"

namespace godwit::ops {

// Bytes of memory for the keys, and for the values, of a tile.
constexpr int64_t WidenedKeyBytes(int64_t head_dim) {
  return kernels::KeyElements(kernels::kQuad, head_dim);
}
constexpr int64_t WidenedValueBytes(int64_t value_dim) {
  return kernels::kTileTokens * kernels::PadToLanes(value_dim);
}

// The keys of a tile of a head: where they lie, or if they are narrow, widened into `memory`, which
// is 64-byte aligned.
const void* WidenedKeys(const kernels::KernelTable& kernels, const KvView& kv, int64_t head_dim,
                        int64_t head, int64_t tile, void* memory);
// The values, likewise.
const void* WidenedValues(const kernels::KernelTable& kernels, const KvView& kv, int64_t value_dim,
                          int64_t head, int64_t tile, void* memory);

}  // namespace godwit::ops
