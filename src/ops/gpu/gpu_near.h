// Attention of rows to their near keys on a GPU, while the host attends to the others.
//
// Near keys are nearly the same in the next step, so the GPU keeps them (gpu_tiles.h): a step sends
// the tile that it writes into. A row's near tiles lie side by side for the kernels, which cut them
// into stretches from the first one on. The GPU's state joins the host's as the second of the two
// (attention_state.h). So a row's bits depend on its position and its keys alone.
#pragma once

#include <cstdint>
#include <span>

#include "ops/attention.h"
#include "ops/exec.h"
#include "ops/gpu/gpu_attention.h"
#include "ops/gpu/gpu_tiles.h"
#include "ops/gpu/near_tiles.h"
#include "tensor/view.h"

namespace godwit::ops {

class GpuTurn;

// Rows of a text that share their last tile, with one source, whose parts are not empty lists. The
// source is as AttendOnGpu has it, but may have parts.
struct NearRows {
  AttentionRows rows;
  NearTiles tiles;
  // Over the near keys [rows * heads, StateStride], in head-major order: in page-locked memory.
  const float* states = nullptr;
};

// The memory for a step of so many rows with up to `tiles` near tiles each.
GpuAttentionMemory GpuNearMemoryOf(const AttentionShape& shape, int64_t tiles, int64_t rows);

// Counts the bytes for a row in a layer whose KV heads lie head_bytes apart. The GPU has its near
// tiles but for the last one.
GpuBusBytes GpuNearBusBytes(const AttentionShape& shape, int64_t head_bytes, const NearCut& cut);

// Begins with the states of all rows, which are there when the turn has waited. Takes page-locked
// memory, which the caller releases then. Throws what devices throw, and Error(kCancelled).
void BeginNearOnGpu(GpuTurn& turn, GpuTiles& tiles, const AttentionShape& shape, int64_t layer,
                    std::span<NearRows> texts);

// Merges the states of each row's far keys (AttentionRows::states) with those of its near ones, and
// computes its rows of out [rows, heads * value_dim]. far: FarOf each of `texts`. sink_logits: as
// Attention has them.
void FinishNear(const Exec& exec, const AttentionShape& shape, std::span<const AttentionRows> far,
                std::span<const NearRows> texts, std::span<const float> sink_logits,
                MatrixView<float> out);

}  // namespace godwit::ops
