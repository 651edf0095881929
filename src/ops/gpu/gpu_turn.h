// GpuTurn: what a step does on a GPU, for the operations of this folder: scratch memory, copies,
// and waiting.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "cuda/device.h"
#include "cuda/ops/matrix.h"
#include "ops/exec.h"
#include "ops/gpu/gpu.h"
#include "tensor/view.h"

namespace godwit::ops {

// Scratch memory of a GPU, or of the host beside it, handed out from its beginning on. Without
// memory it only counts bytes, so that the code that takes memory also tells how much it needs.
class GpuScratch {
 public:
  GpuScratch() = default;
  explicit GpuScratch(const cuda::DeviceMemory& memory)
      : address_(memory.address()), bytes_(memory.bytes()) {}
  explicit GpuScratch(const cuda::HostMemory& memory)
      : address_(reinterpret_cast<cuda::DeviceAddress>(memory.data())), bytes_(memory.bytes()) {}

  template <class T>
  T* New(int64_t n) {
    constexpr int64_t kAlignment = 256;
    const int64_t begin = used_;
    used_ += (n * static_cast<int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
    assert(bytes_ == 0 || used_ <= bytes_);
    return reinterpret_cast<T*>(address_ + static_cast<cuda::DeviceAddress>(begin));
  }
  // Rows with the stride of the host's scratch memory, so that a matrix is one copy.
  template <class T>
  cuda::DeviceMatrix<T> Matrix(int64_t rows, int64_t cols) {
    constexpr auto kPerLine = static_cast<int64_t>(64 / sizeof(T));
    const int64_t stride = (cols + kPerLine - 1) / kPerLine * kPerLine;
    return {New<T>(rows * stride), rows, cols, stride};
  }

  int64_t used() const { return used_; }
  // Gives back what was taken behind the first `used` bytes. Work of one stream comes in order, so
  // the memory may have another use at once.
  void Release(int64_t used) { used_ = used; }

 private:
  cuda::DeviceAddress address_ = 0;
  int64_t bytes_ = 0;
  int64_t used_ = 0;
};

class GpuTurn {
 public:
  // Waits for the GPU. bytes: of scratch memory. host_bytes: of page-locked memory.
  GpuTurn(const Exec& exec, Gpu& gpu, int64_t bytes, int64_t host_bytes = 0);
  // Waits for copies that were begun, which read and write memory of the host.
  ~GpuTurn();
  GpuTurn(const GpuTurn&) = delete;
  GpuTurn& operator=(const GpuTurn&) = delete;

  const Exec& exec() const { return exec_; }
  const cuda::Stream& stream() const { return gpu_.stream(); }
  const cuda::Stream& copies() const { return gpu_.copies(); }
  GpuScratch& scratch() { return scratch_; }
  GpuScratch& host() { return host_; }

  // Copies begin when the stream gets there: the host's memory stays as it is until Wait.
  void CopyIn(MatrixView<const float> from, cuda::DeviceMatrix<float> to);
  void CopyOut(cuda::DeviceMatrix<const float> from, MatrixView<float> to);
  // n > 0 numbers.
  template <class T>
  void CopyIn(const T* from, T* to, int64_t n) {
    CopyInBytes(stream(), from, to, n * static_cast<int64_t>(sizeof(T)));
  }
  // Copies while the stream computes, for which events are to order both.
  void CopyInBeside(const void* from, void* to, int64_t bytes) {
    CopyInBytes(copies(), from, to, bytes);
  }
  // Returns when all work is done. Throws Error(kCancelled) when the caller asked to stop.
  void Wait();
  // The same of the work that an event stands for: what is behind it goes on.
  void Await(const cuda::Event& event);

 private:
  void ThrowIfCancelled() const;
  void CopyInBytes(const cuda::Stream& stream, const void* from, void* to, int64_t bytes);

  const Exec& exec_;
  Gpu& gpu_;
  std::unique_lock<std::mutex> lock_;
  GpuScratch scratch_, host_;
  bool copies_ = false;  // whether copies may be under way
};

}  // namespace godwit::ops
