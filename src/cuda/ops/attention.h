// Attention of query rows over pages of keys and values that lie on a device.
#pragma once

#include <cstdint>

#include "cuda/device.h"
#include "cuda/kernels/attend_pages.h"
#include "cuda/ops/matrix.h"
#include "tensor/dtype.h"

namespace godwit::cuda {

struct DeviceAttentionShape {
  int64_t heads;
  int64_t kv_heads;  // divides heads
  int64_t head_dim;
  int64_t value_dim;    // at most kMaxValueDim
  float scale;          // of the scores
  float score_cap = 0;  // 0: none
};

// The keys and values of a layer of one text. A page lies as in the CPU's memory (ops/kv_layout.h),
// so it is copied as it is.
struct DevicePages {
  const uint8_t* const* pages;  // [tiles]: the layer's part of each page
  int64_t head_bytes;           // from one KV head to the next
  int64_t value_offset;         // from a head's keys to its values
  DType dtype;                  // F32, F16 or BF16
};

// Consecutive tokens of a text.
struct DeviceQueries {
  DeviceMatrix<const float> q;  // [tokens * heads, head_dim] in head-major order
  int64_t tokens;
  int64_t position;  // of the first token, in the text
  // Tokens see the keys of [begin, end) up to themselves, and of these those among the last
  // `window` positions.
  int64_t begin = 0;
  int64_t end = INT64_MAX;
  int64_t window = INT64_MAX;
};

// The bytes of scratch memory for one call.
int64_t AttentionScratchBytes(const DeviceAttentionShape& shape, const DeviceQueries& queries);

// Computes out [tokens, heads * value_dim]. scratch: AttentionScratchBytes. sink_logits [heads], or
// null: each is a key of that score without a value. before [tokens * heads,
// StateFloats(value_dim)], or null: states over other keys, with which the sums begin. Throws
// Error(kUnsupported) for a storage of keys, or a width, that the kernels lack.
void Attend(const Stream& stream, const DeviceAttentionShape& shape, const DevicePages& pages,
            const DeviceQueries& queries, float* scratch, const float* sink_logits,
            const float* before, DeviceMatrix<float> out);
// Computes states [tokens * heads, StateFloats(value_dim)] in place of results, for a merge with
// those over keys that lie elsewhere.
void AttendStates(const Stream& stream, const DeviceAttentionShape& shape, const DevicePages& pages,
                  const DeviceQueries& queries, float* scratch, const float* before, float* states);

}  // namespace godwit::cuda
