// A row of one KV head on its way into a page. It is rounded or quantized, and put into the order
// of the attention kernels (kv_layout.h).
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_table.h"
#include "ops/kv_layout.h"
#include "ops/kv_view.h"

namespace godwit::ops {

// Stores k (rotated) and v [head_dim] of one KV head at a position whose page `to` has; v is null
// with KvLayout::values_in_keys. A row is rounded or quantized once, on its own. Cores may store
// different rows at once, best of different tiles. `layer` names the layer in errors. Throws
// Error(kUnsupported) for a number beyond the range of f16, where that is the type. Numbers that
// are not finite stay as they are.
void StoreRow(const kernels::KernelTable& kernels, const KvLayout& layout, const KvView& to,
              int64_t layer, int64_t head, int64_t position, const float* k, const float* v);

// Stores the centre of a tile's keys [head_dim], or empty for zeros, with KvLayout::centred. No key
// of the tile is stored yet. The centre is a function of the tile's place, so that it may be stored
// again. It is rounded to bf16.
void StoreCentre(const kernels::KernelTable& kernels, const KvLayout& layout, const KvView& to,
                 int64_t head, int64_t tile, std::span<const float> centre);

}  // namespace godwit::ops
