// The work that a step has on a GPU, counted from the model's description and the plan. A GPU's own
// limits are not known here: no measurement of one was made.
#pragma once

#include <cstdint>

#include "model/gpu_plan.h"
#include "model/spec.h"

namespace godwit::bench {

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

}  // namespace godwit::bench
