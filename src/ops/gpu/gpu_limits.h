// The limits of a GPU, measured: what `godwit bench` holds steps against.
#pragma once

#include "base/stopwatch.h"
#include "cuda/ops/limits.h"
#include "ops/gpu/gpu.h"

namespace godwit::ops {

using GpuLimits = cuda::DeviceLimits;

// Takes a fraction of a second and, meanwhile, memory of the device that is free
// (cuda/ops/limits.h).
GpuLimits MeasureGpuLimits(Gpu& gpu, NowMs now_ms = SteadyMs);

}  // namespace godwit::ops
