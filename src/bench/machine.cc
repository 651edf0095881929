#include "bench/machine.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/stopwatch.h"
#include "base/system/pause.h"
#include "bench/statistics.h"

namespace godwit::bench {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;  // taken by a thread at a time
constexpr int kMaxPasses = 5;
constexpr double kEnoughMs = 100;

// The best rate of a few passes: a disturbance only ever makes a pass slower.
template <typename Pass>
double BestRate(Pass pass) {
  double best = 0;
  const Stopwatch all;
  for (int i = 0; i < kMaxPasses && (i < 2 || all.ms() < kEnoughMs); ++i) {
    const Stopwatch watch;
    const double work = pass();
    best = std::max(best, work / (watch.ms() / 1000));
  }
  return best;
}

using PeakKernel = int64_t (*)(int64_t rounds) noexcept;

// A pass has many short tasks, so that others take the share of a thread that is held up. The
// kernel decides how much a round computes.
double RateOf(ThreadPool& pool, PeakKernel kernel) {
  constexpr int64_t kTrialRounds = 500;
  constexpr double kTaskMs = 0.05;
  double trial_ms = kTaskMs;
  for (int i = 0; i < 3; ++i) {
    const Stopwatch trial;
    kernel(kTrialRounds);
    trial_ms = std::min(trial_ms, trial.ms());
  }
  const auto rounds = static_cast<int64_t>(kTrialRounds * std::min(kTaskMs / trial_ms, 1000.0));
  const int64_t tasks = 100 * pool.threads();
  return BestRate([&] {
    std::atomic<int64_t> done{0};
    pool.Run(tasks, [&](int64_t, int) { done += kernel(rounds); });
    return static_cast<double>(done.load());
  });
}

}  // namespace

int64_t LastCacheBytes() {
  constexpr int64_t kUnknown = int64_t{64} << 20;
  const int64_t bytes = std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
  return bytes > 0 ? bytes : kUnknown;
}

int64_t ReadBuffer::SizeBytes(int64_t cache_bytes, int64_t available_bytes) {
  const int64_t most = std::max(int64_t{1} << 30, 2 * cache_bytes);
  const int64_t wanted = std::clamp(4 * cache_bytes, int64_t{128} << 20, most);
  return std::max<int64_t>(1, std::min(wanted, available_bytes / 4) / kPieceBytes) * kPieceBytes;
}

ReadBuffer::ReadBuffer(ThreadPool& pool)
    : buffer_(SizeBytes(LastCacheBytes(), ReadMachineMemory().available_bytes)) {
  auto* floats = reinterpret_cast<float*>(buffer_.data());
  constexpr int64_t kFloats = kPieceBytes / int64_t{sizeof(float)};
  pool.Run(bytes() / kPieceBytes,
           [&](int64_t piece, int) { std::fill_n(floats + piece * kFloats, kFloats, 1.0f); });
}

ReadRate MachineProbe::ReadBandwidth(ThreadPool& pool) {
  if (buffer_ == nullptr) buffer_ = std::make_unique<ReadBuffer>(pool);
  const ReadBuffer& buffer = *buffer_;
  constexpr int64_t kFloats = kPieceBytes / int64_t{sizeof(float)};
  const double rate = BestRate([&] {
    std::atomic<float> sink{0};
    pool.Run(buffer.bytes() / kPieceBytes, [&](int64_t piece, int) {
      sink.store(isa_.peak->read(buffer.data() + piece * kFloats, kPieceBytes),
                 std::memory_order_relaxed);
    });
    return static_cast<double>(buffer.bytes());
  });
  return {rate, buffer.bytes()};
}

double MachineProbe::CacheReadBandwidth() {
  // Half of the cache, or less: what else lies in it must not push the buffer out.
  constexpr int64_t kLeast = int64_t{128} << 10, kMost = int64_t{1} << 20, kReads = 64;
  const int64_t bytes = std::clamp<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE) / 2, kLeast, kMost);
  Buffer buffer(bytes);
  auto* floats = reinterpret_cast<float*>(buffer.data());
  std::fill_n(floats, bytes / int64_t{sizeof(float)}, 1.0f);  // untouched pages are all one page
  float sum = 0;
  const double rate = BestRate([&] {
    for (int64_t i = 0; i < kReads; ++i) sum += isa_.peak->read(floats, bytes);
    return static_cast<double>(kReads * bytes);
  });
  return sum > 0 ? rate : 0;  // uses the sum, so that the reading stays
}

MultiplyPeak MachineProbe::PeakOf(ThreadPool& pool, DType weights) {
  const kernels::PeakTable& peak = *isa_.peak;
  if (weights == DType::kBF16 && peak.bf16 != nullptr) {
    return {"bf16_peak", RateOf(pool, peak.bf16)};
  }
  const bool integers = weights == DType::kI8 || weights == DType::kGrouped;
  if (integers && peak.int8 != nullptr) {
    return {"int8_peak", RateOf(pool, peak.int8)};
  }
  return {"f32_peak", RateOf(pool, peak.f32)};
}

double MachineProbe::ForkJoinMicroseconds(ThreadPool& pool) {
  constexpr size_t kJobs = 2000;
  constexpr double kMaxMs = 100;  // with more threads than cores a job is slow
  const int threads = pool.threads();
  std::vector<double> times;
  times.reserve(kJobs);
  for (const Stopwatch all; times.size() < kJobs && all.ms() < kMaxMs;) {
    std::atomic<int> arrived{0};
    const Stopwatch watch;
    // Each task waits for the others, so no thread can take the task of a late one.
    pool.Run(threads, [&](int64_t, int) {
      arrived.fetch_add(1);
      while (arrived.load(std::memory_order_relaxed) < threads) Pause();
    });
    times.push_back(watch.ms() * 1000);
  }
  return Median(times);
}

}  // namespace godwit::bench
