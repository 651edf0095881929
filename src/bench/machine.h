// What this machine can do at best, measured with the threads of the measurement that is held
// against it. Shared machines change within minutes, so each measurement has its own, taken just
// before it, and takes a fraction of a second.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "kernels/dispatch.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace godwit::bench {

// Bytes of the last cache; where the system does not say, more than most have.
int64_t LastCacheBytes();

// Memory to read from, larger than any cache of this machine: one that reads it over and over finds
// hardly anything of it there. Throws Error(kMemory).
class ReadBuffer {
 public:
  // The pool's threads write it first, so that it lies where they read weights from.
  explicit ReadBuffer(ThreadPool& pool);

  // Four times the last cache where that is 1 GiB or less, at least 128 MiB; of a larger cache
  // twice as much as it holds. At most a quarter of the memory that is available.
  static int64_t SizeBytes(int64_t cache_bytes, int64_t available_bytes);

  const float* data() const { return reinterpret_cast<const float*>(buffer_.data()); }
  int64_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

struct ReadRate {
  double bytes_per_second;
  int64_t buffer_bytes;  // that were read, over and over
};

struct MultiplyPeak {
  std::string kind;   // "f32_peak"
  double per_second;  // multiply-adds of all threads together
};

// What a suite asks: this machine, or a test's that says what it likes and takes no time.
class Probe {
 public:
  virtual ~Probe() = default;

  // The best of a few passes.
  virtual ReadRate ReadBandwidth(ThreadPool& pool) = 0;

  // What a step reads over and over does not come from memory where it is no larger than this.
  virtual int64_t CacheBytes() = 0;

  // Of products with weights of this type. Where the instruction set widens them to f32, f32's.
  virtual MultiplyPeak PeakOf(ThreadPool& pool, DType weights) = 0;

  // Microseconds from the start to the end of a job in which every thread of the pool takes part:
  // the median of many.
  virtual double ForkJoinMicroseconds(ThreadPool& pool) = 0;
};

class MachineProbe : public Probe {
 public:
  explicit MachineProbe(const kernels::Isa& isa) : isa_(isa) {}

  ReadRate ReadBandwidth(ThreadPool& pool) override;
  int64_t CacheBytes() override { return LastCacheBytes(); }
  MultiplyPeak PeakOf(ThreadPool& pool, DType weights) override;
  double ForkJoinMicroseconds(ThreadPool& pool) override;

 private:
  const kernels::Isa& isa_;
  // Taken when the first test asks, with weights and caches in place: it must leave them memory.
  std::unique_ptr<ReadBuffer> buffer_;
};

}  // namespace godwit::bench
