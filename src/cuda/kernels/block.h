// A kernel's view of its block of threads: the same source runs on a GPU and, block by block, on
// the CPU.
//
// A kernel is a struct with a name, a number of threads, arguments, shared memory, and a function
// that runs one block:
//
//   struct Example {
//     static constexpr const char* kName = "Example";
//     static constexpr int kThreads = 128;
//     struct Args { ... };    // plain data, handed over by value
//     struct Shared { ... };  // plain data, left unset
//     template <class Block>
//     GODWIT_DEVICE static void Run(const Block& block, const Args& args);
//   };
//
// The function is a sequence of phases, block.ForThreads([&](int thread) {...}). All threads end a
// phase before any begins the next one. On a GPU a phase is the thread's own call and a barrier. On
// the CPU it is a loop over the threads. No thread number exists outside a phase. So every branch
// there is the same for the whole block, and no thread can miss a barrier. Numbers that a thread
// keeps from one phase to the next are PerThread: registers on a GPU, an array on the CPU.
//
// Two threads of a phase must not touch the same memory if one writes it. The emulation finds
// breaches by running the threads of each phase in both orders (emulated_device.h). Kernels are
// compiled without fused operations on both sides, so std::fma is written out.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define GODWIT_DEVICE __device__ __forceinline__
#define GODWIT_UNROLL _Pragma("unroll")
#else
#define GODWIT_DEVICE inline
#define GODWIT_UNROLL
#endif

namespace godwit::cuda {

// Threads whose numbers a warp's sum or maximum joins.
inline constexpr int kWarpThreads = 32;

// A number of type T for each thread of a block.
template <class Block, class T>
using PerThread = typename Block::template PerThreadOf<T>;

// The place of a block in its grid.
struct BlockPlace {
  int64_t x;
  int64_t y;
  int64_t z;
};

// A block that runs on the CPU. Numbers start as NaN, as do those of shared memory.
template <class Kernel>
class EmulatedBlock {
 public:
  static constexpr int kThreads = Kernel::kThreads;
  static_assert(kThreads % kWarpThreads == 0);

  EmulatedBlock(const BlockPlace& place, void* shared, bool descending)
      : place_(place), shared_(shared), descending_(descending) {}

  int64_t x() const { return place_.x; }
  int64_t y() const { return place_.y; }
  int64_t z() const { return place_.z; }
  typename Kernel::Shared& shared() const {
    return *static_cast<typename Kernel::Shared*>(shared_);
  }

  template <class T>
  class PerThreadOf {
   public:
    PerThreadOf() { std::memset(values_, 0xff, sizeof(values_)); }
    T& operator[](int thread) { return values_[thread]; }
    const T& operator[](int thread) const { return values_[thread]; }

   private:
    T values_[kThreads];
  };

  template <class Body>
  void ForThreads(const Body& body) const {
    for (int i = 0; i < kThreads; ++i) body(descending_ ? kThreads - 1 - i : i);
  }

  // Every thread's number becomes the sum of its warp's, or the largest of them. The order of the
  // sum is that of a butterfly: distances of 16, 8, 4, 2 and 1.
  void SumOfWarps(PerThreadOf<float>& numbers) const {
    JoinWarps(numbers, [](float a, float b) { return a + b; });
  }
  void MaxOfWarps(PerThreadOf<float>& numbers) const {
    JoinWarps(numbers, [](float a, float b) { return b > a ? b : a; });
  }

 private:
  template <class Join>
  static void JoinWarps(PerThreadOf<float>& numbers, const Join& join) {
    for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      const PerThreadOf<float> before = numbers;
      for (int i = 0; i < kThreads; ++i) numbers[i] = join(before[i], before[i ^ distance]);
    }
  }

  BlockPlace place_;
  void* shared_;
  bool descending_;
};

#ifdef __CUDACC__
// A block of a GPU, as one of its threads sees it.
template <class Kernel>
class GpuBlock {
 public:
  static constexpr int kThreads = Kernel::kThreads;

  __device__ int64_t x() const { return blockIdx.x; }
  __device__ int64_t y() const { return blockIdx.y; }
  __device__ int64_t z() const { return blockIdx.z; }
  __device__ typename Kernel::Shared& shared() const {
    extern __shared__ __align__(16) unsigned char memory[];
    return *reinterpret_cast<typename Kernel::Shared*>(memory);
  }

  template <class T>
  class PerThreadOf {
   public:
    __device__ T& operator[](int) { return value_; }
    __device__ const T& operator[](int) const { return value_; }

   private:
    T value_;
  };

  template <class Body>
  __device__ __forceinline__ void ForThreads(const Body& body) const {
    body(static_cast<int>(threadIdx.x));
    __syncthreads();
  }

  __device__ void SumOfWarps(PerThreadOf<float>& numbers) const {
    GODWIT_UNROLL
    for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      numbers[0] = numbers[0] + __shfl_xor_sync(~0u, numbers[0], distance);
    }
  }
  __device__ void MaxOfWarps(PerThreadOf<float>& numbers) const {
    GODWIT_UNROLL
    for (int distance = kWarpThreads / 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(~0u, numbers[0], distance);
      if (other > numbers[0]) numbers[0] = other;
    }
  }
};
#endif

// Scratch memory of SumOfBlock and MaxOfBlock.
template <int kThreads>
struct WarpResults {
  float of_warp[kThreads / kWarpThreads];
};

// Every thread's number becomes the sum of all of the block's: the sums of warps, in ascending
// order.
template <class Block>
GODWIT_DEVICE void SumOfBlock(const Block& block, PerThread<Block, float>& numbers,
                              WarpResults<Block::kThreads>& scratch) {
  block.SumOfWarps(numbers);
  block.ForThreads([&](int thread) {
    if (thread % kWarpThreads == 0) scratch.of_warp[thread / kWarpThreads] = numbers[thread];
  });
  block.ForThreads([&](int thread) {
    float sum = scratch.of_warp[0];
    for (int i = 1; i < Block::kThreads / kWarpThreads; ++i) sum += scratch.of_warp[i];
    numbers[thread] = sum;
  });
}

// The same with the largest number.
template <class Block>
GODWIT_DEVICE void MaxOfBlock(const Block& block, PerThread<Block, float>& numbers,
                              WarpResults<Block::kThreads>& scratch) {
  block.MaxOfWarps(numbers);
  block.ForThreads([&](int thread) {
    if (thread % kWarpThreads == 0) scratch.of_warp[thread / kWarpThreads] = numbers[thread];
  });
  block.ForThreads([&](int thread) {
    float largest = scratch.of_warp[0];
    for (int i = 1; i < Block::kThreads / kWarpThreads; ++i) {
      if (scratch.of_warp[i] > largest) largest = scratch.of_warp[i];
    }
    numbers[thread] = largest;
  });
}

}  // namespace godwit::cuda
