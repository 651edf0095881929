#include "ops/gpu/gpu_limits.h"

namespace godwit::ops {

GpuLimits MeasureGpuLimits(Gpu& gpu, NowMs now_ms) {
  const std::lock_guard lock(gpu.mutex());
  return cuda::MeasureLimits(gpu.stream(), now_ms);
}

}  // namespace godwit::ops
