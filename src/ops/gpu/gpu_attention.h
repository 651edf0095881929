// Attention on a GPU over keys and values in pages of the host, for GpuStep and for plans of
// memory.
//
// A GPU holds no keys. Those that rows see come in passes of a few stretches (ops/attention.h), cut
// by position, into one of two places of a fixed size. While a GPU attends to a pass, the host
// gathers the next one into page-locked memory, and a second stream copies it. Rows keep a state
// (attention_state.h) from pass to pass. Stretches join it in ascending order, so the bits depend
// neither on passes nor on chunks.
//
// Rows that see their own block of the text (Visible::block) come block by block, each with passes
// over the keys of that block alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ops/alibi.h"
#include "ops/attention.h"
#include "tensor/dtype.h"
#include "tensor/view.h"

namespace godwit::ops {

class GpuTurn;

// The memory that attention of a step of so many rows takes: scratch memory of the GPU, and
// page-locked memory of the host.
struct GpuAttentionMemory {
  int64_t scratch_bytes = 0;
  int64_t host_bytes = 0;
};
GpuAttentionMemory GpuAttentionMemoryOf(const AttentionShape& shape, int64_t rows);

// The bytes that cross the bus for it, but for sink logits.
struct GpuBusBytes {
  int64_t in = 0;   // to the GPU
  int64_t out = 0;  // back
  int64_t both() const { return in + out; }
  GpuBusBytes& operator+=(const GpuBusBytes& other);
};
// Counts them for so many rows of a text from `position` on, in a layer whose KV heads lie
// head_bytes apart.
GpuBusBytes GpuAttentionBusBytes(const AttentionShape& shape, int64_t head_bytes,
                                 const Visible& visible, int64_t position, int64_t rows);

// Why GPUs do not attend to keys of this type in a model of this shape; empty: they do.
std::string WhyNoGpuAttention(const AttentionShape& shape, const Alibi& alibi, DType kv_type);

// Computes attention as ops::Attention does, and waits. Every text has one source without parts or
// places, and no states. Rows have the same bits in any company. Throws what devices
// throw, and Error(kCancelled).
void AttendOnGpu(GpuTurn& turn, const AttentionShape& shape, std::span<const AttentionRows> texts,
                 std::span<const float> sink_logits, MatrixView<float> out);

}  // namespace godwit::ops
