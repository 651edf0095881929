// The limits of a device, measured by the host's clock.
#pragma once

#include <cstdint>

#include "base/stopwatch.h"
#include "cuda/device.h"

namespace godwit::cuda {

struct DeviceLimits {
  double read_bytes_per_second = 0;  // by kernels, of the device's memory
  double in_bytes_per_second = 0;    // from page-locked memory of the host to the device's
  double out_bytes_per_second = 0;
  // Multiply-adds of tensor cores.
  double bf16_per_second = 0;
  double int8_per_second = 0;
};

// The most memory that a measurement takes, on the device and on the host.
inline constexpr int64_t kLimitsDeviceBytes = int64_t{512} << 20;
inline constexpr int64_t kLimitsHostBytes = int64_t{64} << 20;

// Measures for a fraction of a second, with as much of that memory as is free. Work grows until it
// takes a few milliseconds, and the best of some passes counts.
DeviceLimits MeasureLimits(const Stream& stream, NowMs now_ms);

// The pieces of MeasureLimits, each by itself. `out` has PeakThreads numbers.
int64_t PeakThreads(const DeviceFacts& facts);
// Returns the multiply-adds.
double MultiplyBF16(const Stream& stream, int64_t rounds, float* out);
double MultiplyInt8(const Stream& stream, int64_t rounds, float* out);
// bytes: a multiple of 16.
void Read(const Stream& stream, const void* data, int64_t bytes, uint32_t* out);

}  // namespace godwit::cuda
