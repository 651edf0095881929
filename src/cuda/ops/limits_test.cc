#include "cuda/ops/limits.h"

#include <gtest/gtest.h>

#include <numeric>

#include "cuda/kernels/peak.h"
#include "cuda/test_support.h"

namespace godwit::cuda::limits_test {
namespace {

int64_t ThreadsOf(TestGpu& gpu) { return PeakThreads(gpu.stream().device().facts()); }

// A sum of a tile grows by its depth in each round. So all sums together are the multiply-adds.
TEST(Limits, MultiplyAddsAreThoseThatTheKernelDoes) {
  for (const bool ints : {false, true}) {
    for (const int64_t rounds : {1, 3}) {
      double told = 0;
      const std::vector<float> sums = InBothOrders([&](TestGpu& gpu) {
        const auto out = gpu.NewMatrix<float>(1, ThreadsOf(gpu));
        told = ints ? MultiplyInt8(gpu.stream(), rounds, out.data)
                    : MultiplyBF16(gpu.stream(), rounds, out.data);
        return gpu.GetMatrix(out);
      });
      EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0.0), told);
    }
  }
}

TEST(Limits, EveryWordIsReadOnce) {
  for (const int64_t bytes : {int64_t{16}, int64_t{48}, int64_t{100'000}}) {
    std::vector<uint32_t> words(static_cast<size_t>(bytes) / 4);
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761u);
    TestGpu gpu(ThreadOrder::kAscending);
    const auto out = gpu.NewMatrix<uint32_t>(1, ThreadsOf(gpu));
    Read(gpu.stream(), gpu.Put(words), bytes, out.data);
    const std::vector<uint32_t> sums = gpu.GetMatrix(out);
    EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0u),
              std::accumulate(words.begin(), words.end(), 0u));
  }
}

double clock_ms = 0;
template <int kStepMs>
double Stepping() {
  return clock_ms += kStepMs;
}

// With a clock by which every pass takes ten milliseconds, the least work is done.
TEST(Limits, AreWorkDividedByTime) {
  EmulatedDevice device;
  const Stream stream(device);
  const DeviceLimits limits = MeasureLimits(stream, Stepping<10>);
  const double second = 100;  // passes
  EXPECT_EQ(limits.in_bytes_per_second, second * (1 << 20));
  EXPECT_EQ(limits.out_bytes_per_second, second * (1 << 20));
  EXPECT_EQ(limits.read_bytes_per_second, 8 * second * (1 << 20));
  // 64 warps of 8 chains of a tile.
  EXPECT_EQ(limits.bf16_per_second, second * 64 * 8 * (16 * 8 * 16));
  EXPECT_EQ(limits.int8_per_second, second * 64 * 8 * (16 * 8 * 32));
  EXPECT_EQ(device.FreeBytes(), device.facts().memory_bytes);
}

TEST(Limits, TakeAsMuchMemoryAsIsFree) {
  EmulatedDevice device({.memory_bytes = 5 << 20});
  const Stream stream(device);
  EXPECT_GT(MeasureLimits(stream, Stepping<10>).read_bytes_per_second, 0);
}

}  // namespace
}  // namespace godwit::cuda::limits_test
