// The work that a step has on a GPU, counted from the model's description and the plan, beside the
// GPU's limits.
#pragma once

#include <cstdint>

#include "bench/suite.h"
#include "model/gpu_plan.h"
#include "model/spec.h"
#include "ops/gpu/gpu_attention.h"
#include "ops/gpu/gpu_limits.h"
#include "ops/gpu/near_tiles.h"
#include "tensor/dtype.h"

namespace godwit::bench {

using ops::GpuBusBytes;
using ops::GpuLimits;
using ops::MeasureGpuLimits;

struct GpuWork {
  int64_t weight_bytes = 0;         // that every step reads there
  int64_t layer_multiply_adds = 0;  // of a token in the matrices of layers there
  int64_t head_multiply_adds = 0;   // of a token that meets the output head there
  // The bytes that cross the bus: of a token in layers, and in the output head.
  GpuBusBytes layer_bus, head_bus;
  int64_t waits = 0;  // of the host for the GPU, in a step with one logit row
};

GpuWork CountGpuWork(const DecoderSpec& spec, const GpuPlan& plan);

// The GPU's part of attention, for all tokens of a prompt together or for one of an answer.
struct GpuAttentionWork {
  GpuBusBytes bus;           // queries, results, keys and values
  int64_t memory_bytes = 0;  // of keys and values that it keeps, and reads from its memory
  int64_t multiply_adds = 0;
};

// Counts it for a prompt that the GPU reads: `tokens` tokens in chunks, behind `depth` others, with
// a policy that keeps every token. A chunk brings all keys that its rows see, for each layer.
GpuAttentionWork CountGpuReading(const DecoderSpec& spec, DType kv_type, int64_t depth,
                                 int64_t tokens, int64_t chunk_tokens);

// Counts it for a token of an answer behind `depth` others, where the GPU attends to near keys
// (PolicyOptions::gpu_window). It has them already but for those of the token's own tile.
GpuAttentionWork CountGpuNear(const DecoderSpec& spec, DType kv_type, const ops::NearTiles& near,
                              int64_t depth);

// Holds a test against the GPU's limit, by the GPU's part of its work: what takes longest. That is
// multiplying, or the bus in either direction; for a continued text also reading its memory.
// weights: of layers. attention: of the test's prompt, or of a token of its answer.
void HoldAgainst(const GpuLimits& limits, const GpuWork& work, DType weights,
                 const GpuAttentionWork& attention, TestResult& result);

}  // namespace godwit::bench
