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
// A phase of ForThreadsAlone has no barrier behind it: its threads may read any memory, and write
// PerThread numbers alone. The next phase of the other kind waits for it.
//
// Two threads of a phase must not touch the same memory if one writes it. The emulation finds
// breaches by running the threads of each phase in both orders (emulated_device.h). Kernels are
// compiled without fused operations on both sides, so std::fma is written out.
#pragma once

#include <bit>
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

// A thread's part of the tiles that a warp multiplies on tensor cores. A word has two numbers of
// bf16, or four of int8, that lie side by side in k. Tiles are 16 rows and 8 columns of 8 words.
// The layout is that of PTX's mma.m16n8k16 and, for int8, mma.m16n8k32 ("Matrix Fragments"). With
// g = lane / 4 and t = lane % 4 it is:
//   TileA  words (row g, word t), (row g + 8, word t), (row g, word t + 4), (row g + 8, word t + 4)
//   TileB  words (word t, column g), (word t + 4, column g)
//   TileC  sums (row g, columns 2 t and 2 t + 1), (row g + 8, the same columns); TileInts: of int8
struct TileA {
  uint32_t words[4];
};
struct TileB {
  uint32_t words[2];
};
struct TileC {
  float sums[4];
};
struct TileInts {
  int32_t sums[4];
};

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
  template <class Body>
  void ForThreadsAlone(const Body& body) const {
    ForThreads(body);
  }

  // Adds the product of each warp's tiles of bf16, c += a * b. Here k ascends in one chain of sums;
  // products of bf16 numbers are exact. Tensor cores add the 16 products in an order of their own.
  void MultiplyTiles(const PerThreadOf<TileA>& a, const PerThreadOf<TileB>& b,
                     PerThreadOf<TileC>& c) const {
    const auto number = [](uint32_t word, int i) {
      return std::bit_cast<float>(i == 0 ? word << 16 : word & 0xffff0000u);
    };
    MultiplyWords<float, 2>(a, b, number, number, c);
  }

  // The same of int8, exact. The numbers of b are signed or unsigned, those of a signed.
  template <bool kSignedB>
  void MultiplyInts(const PerThreadOf<TileA>& a, const PerThreadOf<TileB>& b,
                    PerThreadOf<TileInts>& c) const {
    const auto number = [](uint32_t word, int i) {
      return int32_t{static_cast<int8_t>(word >> (8 * i) & 255u)};
    };
    const auto number_of_b = [&](uint32_t word, int i) {
      return kSignedB ? number(word, i) : static_cast<int32_t>(word >> (8 * i) & 255u);
    };
    MultiplyWords<int32_t, 4>(a, b, number, number_of_b, c);
  }

  // Every thread's number becomes the sum of its warp's, or the largest of them. The order of the
  // sum is that of a butterfly: distances of 16, 8, 4, 2 and 1.
  void SumOfWarps(PerThreadOf<float>& numbers) const {
    JoinWarps(numbers, [](float a, float b) { return a + b; });
  }
  void MaxOfWarps(PerThreadOf<float>& numbers) const {
    JoinWarps(numbers, [](float a, float b) { return b > a ? b : a; });
  }
  // The same of the four threads from a multiple of 4 on. No thread waits for others than these.
  void MaxOfQuads(PerThreadOf<float>& numbers) const {
    JoinWarps(
        numbers, [](float a, float b) { return b > a ? b : a; }, 2);
  }

 private:
  // Words of kNumbers numbers. of_a(word, i) and of_b(word, i) are number i of a word.
  template <class T, int kNumbers, class OfA, class OfB, class Sums>
  static void MultiplyWords(const PerThreadOf<TileA>& a, const PerThreadOf<TileB>& b,
                            const OfA& of_a, const OfB& of_b, PerThreadOf<Sums>& c) {
    constexpr int kDepth = 8 * kNumbers;
    for (int warp = 0; warp < kThreads; warp += kWarpThreads) {
      T left[16][kDepth], right[kDepth][8], sums[16][8];  // [row][k], [k][column], [row][column]
      for (int lane = 0; lane < kWarpThreads; ++lane) {
        const int g = lane / 4, t = lane % 4, thread = warp + lane;
        for (int i = 0; i < 4; ++i) {
          for (int n = 0; n < kNumbers; ++n) {
            left[g + i % 2 * 8][(t + i / 2 * 4) * kNumbers + n] = of_a(a[thread].words[i], n);
          }
          sums[g + i / 2 * 8][t * 2 + i % 2] = c[thread].sums[i];
        }
        for (int i = 0; i < 2; ++i) {
          for (int n = 0; n < kNumbers; ++n) {
            right[(t + i * 4) * kNumbers + n][g] = of_b(b[thread].words[i], n);
          }
        }
      }
      for (int row = 0; row < 16; ++row) {
        for (int k = 0; k < kDepth; ++k) {
          for (int column = 0; column < 8; ++column) {
            sums[row][column] += left[row][k] * right[k][column];
          }
        }
      }
      for (int lane = 0; lane < kWarpThreads; ++lane) {
        for (int i = 0; i < 4; ++i) {
          c[warp + lane].sums[i] = sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
        }
      }
    }
  }

  template <class Join>
  static void JoinWarps(PerThreadOf<float>& numbers, const Join& join,
                        int largest_distance = kWarpThreads / 2) {
    for (int distance = largest_distance; distance > 0; distance /= 2) {
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
    if (alone_) __syncthreads();
    alone_ = false;
    body(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  template <class Body>
  __device__ __forceinline__ void ForThreadsAlone(const Body& body) const {
    body(static_cast<int>(threadIdx.x));
    alone_ = true;
  }

  __device__ __forceinline__ void MultiplyTiles(const PerThreadOf<TileA>& a,
                                                const PerThreadOf<TileB>& b,
                                                PerThreadOf<TileC>& c) const {
    const uint32_t* const x = a[0].words;
    const uint32_t* const y = b[0].words;
    float* const sums = c[0].sums;
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
  }

  template <bool kSignedB>
  __device__ __forceinline__ void MultiplyInts(const PerThreadOf<TileA>& a,
                                               const PerThreadOf<TileB>& b,
                                               PerThreadOf<TileInts>& c) const {
    const uint32_t* const x = a[0].words;
    const uint32_t* const y = b[0].words;
    int32_t* const sums = c[0].sums;
    if constexpr (kSignedB) {
      asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    } else {
      asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 "
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
          : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
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
  __device__ void MaxOfQuads(PerThreadOf<float>& numbers) const {
    GODWIT_UNROLL
    for (int distance = 2; distance > 0; distance /= 2) {
      const float other = __shfl_xor_sync(~0u, numbers[0], distance);
      if (other > numbers[0]) numbers[0] = other;
    }
  }

 private:
  mutable bool alone_ = false;  // whether the last phase had no barrier
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
