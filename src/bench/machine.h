// The limits of this machine, measured with the threads of the measurement that is compared with
// them. Shared machines change within minutes, so each measurement has its own limits, taken just
// before it within a fraction of a second.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "kernels/dispatch.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace godwit::bench {

// Bytes of the last cache; if the system does not tell, more than most have.
int64_t LastCacheBytes();

// Memory to read from, larger than any cache of this machine, so that repeated reading finds hardly
// any of it there. Throws Error(kMemory).
class ReadBuffer {
 public:
  // The pool's threads write it first, so that it lies where they read weights from.
  explicit ReadBuffer(ThreadPool& pool);

  // Four times the last cache, at least 128 MiB, and at most 1 GiB or twice the last cache. Never
  // more than a quarter of the available memory.
  static int64_t SizeBytes(int64_t cache_bytes, int64_t available_bytes);

  const float* data() const { return reinterpret_cast<const float*>(buffer_.data()); }
  int64_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

struct ReadRate {
  double bytes_per_second;
  int64_t buffer_bytes;  // read over and over
};

struct MultiplyPeak {
  std::string kind;   // "f32_peak"
  double per_second;  // multiply-adds of all threads together
};

// The source of a suite's limits: this machine, or a test's, which gives any figures and takes no
// time.
class Probe {
 public:
  virtual ~Probe() = default;

  // The read bandwidth: the best of a few passes.
  virtual ReadRate ReadBandwidth(ThreadPool& pool) = 0;

  // The rate at which one core reads what its second-level cache holds, in bytes a second.
  virtual double CacheReadBandwidth() = 0;

  // The size up to which data that a step reads over and over does not come from memory.
  virtual int64_t CacheBytes() = 0;

  // The peak of products with weights of this type. Where the instruction set widens them to f32,
  // it is f32's.
  virtual MultiplyPeak PeakOf(ThreadPool& pool, DType weights) = 0;

  // Microseconds from the start to the end of a job in which every thread of the pool takes part:
  // the median of many.
  virtual double ForkJoinMicroseconds(ThreadPool& pool) = 0;
};

class MachineProbe : public Probe {
 public:
  explicit MachineProbe(const kernels::Isa& isa) : isa_(isa) {}

  ReadRate ReadBandwidth(ThreadPool& pool) override;
  double CacheReadBandwidth() override;
  int64_t CacheBytes() override { return LastCacheBytes(); }
  MultiplyPeak PeakOf(ThreadPool& pool, DType weights) override;
  double ForkJoinMicroseconds(ThreadPool& pool) override;

 private:
  const kernels::Isa& isa_;
  // The buffer, taken when the first test asks, with weights and caches in place: it must leave
  // them memory.
  std::unique_ptr<ReadBuffer> buffer_;
};

}  // namespace godwit::bench
