#include "cuda/ops/limits.h"

#include <algorithm>
#include <cassert>

#include "cuda/kernels/peak.h"

namespace godwit::cuda {
namespace {

// Blocks that a processor runs at once: 2048 threads.
constexpr int64_t kBlocksEach = 8;
constexpr double kEnoughMs = 4;
constexpr int kPasses = 5;
constexpr int64_t kLeastBytes = int64_t{1} << 20;
constexpr int64_t kMostRounds = int64_t{1} << 20;
// Kernels of a pass, so that the time to start one does not count.
constexpr int kLaunches = 8;

int64_t Blocks(const DeviceFacts& facts) { return kBlocksEach * facts.processors; }

template <class Kernel>
double Multiply(const Stream& stream, int64_t rounds, float* out) {
  const int64_t blocks = Blocks(stream.device().facts());
  stream.Launch<Kernel>({.x = blocks}, {.rounds = rounds, .out = out});
  constexpr int64_t kTile = int64_t{16} * 8 * Kernel::kDepth;
  const int64_t warps = blocks * Kernel::kThreads / kWarpThreads;
  return static_cast<double>(warps * kPeakChains * rounds * kTile);
}

// Work in a second. pass(size) does work of that size in the stream, and returns it.
template <class Pass>
double BestRate(const Stream& stream, NowMs now_ms, int64_t least, int64_t most, const Pass& pass) {
  double best = 0;
  int64_t size = least;
  for (int passes = 0; passes < kPasses;) {
    const double begin_ms = now_ms();
    const double work = pass(size);
    stream.Synchronize();
    const double ms = std::max(now_ms() - begin_ms, 1e-6);
    if (ms < kEnoughMs && 2 * size <= most && passes == 0) {
      size *= 2;
      continue;
    }
    best = std::max(best, work / ms * 1000);
    ++passes;
  }
  return best;
}

}  // namespace

int64_t PeakThreads(const DeviceFacts& facts) {
  static_assert(PeakBF16::kThreads == PeakInt8::kThreads);
  static_assert(PeakBF16::kThreads == ReadMemory::kThreads);
  return Blocks(facts) * PeakBF16::kThreads;
}

double MultiplyBF16(const Stream& stream, int64_t rounds, float* out) {
  return Multiply<PeakBF16>(stream, rounds, out);
}

double MultiplyInt8(const Stream& stream, int64_t rounds, float* out) {
  return Multiply<PeakInt8>(stream, rounds, out);
}

void Read(const Stream& stream, const void* data, int64_t bytes, uint32_t* out) {
  assert(bytes % int64_t{sizeof(ReadMemory::Line)} == 0);
  const int64_t blocks = Blocks(stream.device().facts());
  stream.Launch<ReadMemory>({.x = blocks}, {.lines = static_cast<const ReadMemory::Line*>(data),
                                            .count = bytes / int64_t{sizeof(ReadMemory::Line)},
                                            .blocks = blocks,
                                            .out = out});
}

DeviceLimits MeasureLimits(const Stream& stream, NowMs now_ms) {
  Device& device = stream.device();
  const DeviceMemory out(device, PeakThreads(device.facts()) * int64_t{sizeof(float)});
  int64_t bytes = kLimitsDeviceBytes;
  while (bytes > kLeastBytes && bytes > device.FreeBytes() / 2) bytes /= 2;
  const DeviceMemory memory(device, bytes);
  const int64_t host_bytes = std::min(bytes, kLimitsHostBytes);
  const HostMemory host(device, host_bytes);
  const auto rate = [&](int64_t least, int64_t most, const auto& pass) {
    return BestRate(stream, now_ms, least, most, pass);
  };
  DeviceLimits limits;
  limits.in_bytes_per_second = rate(kLeastBytes, host_bytes, [&](int64_t size) {
    stream.CopyIn(host.data(), memory, size);
    return static_cast<double>(size);
  });
  limits.out_bytes_per_second = rate(kLeastBytes, host_bytes, [&](int64_t size) {
    stream.CopyOut(memory, host.data(), size);
    return static_cast<double>(size);
  });
  limits.read_bytes_per_second = rate(kLeastBytes, bytes, [&](int64_t size) {
    for (int i = 0; i < kLaunches; ++i) {
      Read(stream, memory.As<const void>(), size, out.As<uint32_t>());
    }
    return static_cast<double>(kLaunches * size);
  });
  limits.bf16_per_second = rate(1, kMostRounds, [&](int64_t rounds) {
    return MultiplyBF16(stream, rounds, out.As<float>());
  });
  limits.int8_per_second = rate(1, kMostRounds, [&](int64_t rounds) {
    return MultiplyInt8(stream, rounds, out.As<float>());
  });
  return limits;
}

}  // namespace godwit::cuda
