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

// Memory to read from: far larger than any cache of this machine. Throws Error(kMemory).
class ReadBuffer {
 public:
  // The pool's threads write it first, so that it lies where they read weights from.
  explicit ReadBuffer(ThreadPool& pool);

  static int64_t SizeBytes();

  const float* data() const { return reinterpret_cast<const float*>(buffer_.data()); }
  int64_t bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

struct MultiplyPeak {
  std::string kind;   // "f32_peak"
  double per_second;  // multiply-adds of all threads together
};

// What a suite asks: this machine, or a test's that says what it likes and takes no time.
class Probe {
 public:
  virtual ~Probe() = default;

  // Bytes in a second, the best of a few passes.
  virtual double ReadBandwidth(ThreadPool& pool) = 0;

  // Of products with weights of this type. Where the instruction set widens them to f32, f32's.
  virtual MultiplyPeak PeakOf(ThreadPool& pool, DType weights) = 0;

  // Microseconds from the start to the end of a job in which every thread of the pool takes part:
  // the median of many.
  virtual double ForkJoinMicroseconds(ThreadPool& pool) = 0;
};

class MachineProbe : public Probe {
 public:
  explicit MachineProbe(const kernels::Isa& isa) : isa_(isa) {}

  double ReadBandwidth(ThreadPool& pool) override;
  MultiplyPeak PeakOf(ThreadPool& pool, DType weights) override;
  double ForkJoinMicroseconds(ThreadPool& pool) override;

 private:
  const kernels::Isa& isa_;
  // Taken when the first test asks, with weights and caches in place: it must leave them memory.
  std::unique_ptr<ReadBuffer> buffer_;
};

}  // namespace godwit::bench
