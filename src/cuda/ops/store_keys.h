// Keys and values of a step, into pages on a device.
#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "cuda/ops/matrix.h"
#include "tensor/dtype.h"

namespace godwit::cuda {

// The pages of a layer of one text, which get keys and values. They lie as in the CPU's memory.
struct DeviceTarget {
  uint8_t* const* pages;  // [tiles]: the layer's part of each page
  int64_t head_bytes;     // from one KV head to the next
  int64_t value_offset;   // from a head's keys to its values
  DType dtype;            // F32, F16 or BF16
};

// Stores the rows of neighbouring tokens from `position` on, each rounded once. k [kv_heads *
// tokens, head_dim] is in head-major order (RotateHeads with as many heads as KV heads), v [tokens,
// kv_heads * head_dim] is not. out_of_range: a number that becomes 1 if a finite number is beyond
// the range of F16, where that is the type. Throws Error(kUnsupported) for another storage.
void StoreKeyRows(const Stream& stream, DeviceMatrix<const float> k, DeviceMatrix<const float> v,
                  int64_t position, const DeviceTarget& to, int32_t* out_of_range);

}  // namespace godwit::cuda
