// The work that a step has on a GPU, counted from the model's description and the plan, beside the
// GPU's limits.
#pragma once

#include <cstdint>

#include "bench/suite.h"
#include "model/gpu_plan.h"
#include "model/spec.h"
#include "ops/gpu/gpu_limits.h"
#include "tensor/dtype.h"

namespace godwit::bench {

using ops::GpuLimits;
using ops::MeasureGpuLimits;

struct GpuWork {
  int64_t weight_bytes = 0;         // that every step reads there
  int64_t layer_multiply_adds = 0;  // of a token in the matrices of layers there
  int64_t head_multiply_adds = 0;   // of a token that meets the output head there
  // The bytes that cross the bus both ways: of a token in layers, and in the output head.
  int64_t layer_bus_bytes = 0;
  int64_t head_bus_bytes = 0;
  int64_t waits = 0;  // of the host for the GPU, in a step with one logit row
};

GpuWork CountGpuWork(const DecoderSpec& spec, const GpuPlan& plan);

// Holds a test against the GPU's limit, by the GPU's part of its work. For a prompt that is
// multiplying. For a continued text it is reading weights or multiplying, whichever takes longer.
// weights: of layers.
void HoldAgainst(const GpuLimits& limits, const GpuWork& work, DType weights, TestResult& result);

}  // namespace godwit::bench
