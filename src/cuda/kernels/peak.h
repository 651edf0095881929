// Kernels whose time tells a GPU's limits: products on tensor cores without memory, and the reading
// of memory. Each returns a number that shows what it did.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"

namespace godwit::cuda {

// Chains of products of a warp, none of which waits for another.
inline constexpr int kPeakChains = 8;

// Every number of every tile is 1, so that a chain's sums grow by the depth of a tile in each
// round.
template <class Block, class Sums, class Multiply>
GODWIT_DEVICE void MultiplyOnes(const Block& block, uint32_t ones, int64_t rounds,
                                const Multiply& multiply, PerThread<Block, Sums>* sums) {
  PerThread<Block, TileA> a;
  PerThread<Block, TileB> b;
  block.ForThreadsAlone([&](int thread) {
    a[thread] = {{ones, ones, ones, ones}};
    b[thread] = {{ones, ones}};
    // Chains begin differently, or a compiler would compute one of them.
    GODWIT_UNROLL
    for (int chain = 0; chain < kPeakChains; ++chain) {
      sums[chain][thread] = {};
      sums[chain][thread].sums[0] += chain;
    }
  });
  for (int64_t round = 0; round < rounds; ++round) {
    GODWIT_UNROLL
    for (int chain = 0; chain < kPeakChains; ++chain) multiply(a, b, sums[chain]);
  }
}

struct PeakArgs {
  int64_t rounds;
  float* out;  // [blocks, kThreads]: the sums of a thread's chains, without what they began with

  template <class Block, class Sums>
  GODWIT_DEVICE void Set(const Block& block, int thread, const PerThread<Block, Sums>* sums) const {
    float all = 0;
    GODWIT_UNROLL
    for (int chain = 0; chain < kPeakChains; ++chain) {
      GODWIT_UNROLL
      for (int i = 0; i < 4; ++i) all += static_cast<float>(sums[chain][thread].sums[i]);
    }
    out[block.x() * Block::kThreads + thread] = all - kPeakChains * (kPeakChains - 1) / 2;
  }
};

struct PeakBF16 {
  static constexpr const char* kName = "PeakBF16";
  static constexpr int kThreads = 256;
  static constexpr int kDepth = 16;  // multiply-adds of a number of a tile, each round
  using Args = PeakArgs;
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    PerThread<Block, TileC> sums[kPeakChains];
    MultiplyOnes<Block, TileC>(
        block, 0x3f803f80u, args.rounds,
        [&](const auto& a, const auto& b, auto& c) { block.MultiplyTiles(a, b, c); }, sums);
    block.ForThreads([&](int thread) { args.Set<Block, TileC>(block, thread, sums); });
  }
};

struct PeakInt8 {
  static constexpr const char* kName = "PeakInt8";
  static constexpr int kThreads = 256;
  static constexpr int kDepth = 32;
  using Args = PeakArgs;
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    PerThread<Block, TileInts> sums[kPeakChains];
    MultiplyOnes<Block, TileInts>(
        block, 0x01010101u, args.rounds,
        [&](const auto& a, const auto& b, auto& c) { block.template MultiplyInts<true>(a, b, c); },
        sums);
    block.ForThreads([&](int thread) { args.Set<Block, TileInts>(block, thread, sums); });
  }
};

struct ReadMemory {
  static constexpr const char* kName = "ReadMemory";
  static constexpr int kThreads = 256;
  struct alignas(16) Line {
    uint32_t words[4];
  };
  struct Args {
    const Line* lines;
    int64_t count;
    int64_t blocks;  // of the grid
    uint32_t* out;   // [blocks, kThreads]: the sums of words, modulo 2^32
  };
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    block.ForThreads([&](int thread) {
      const int64_t first = block.x() * kThreads + thread;
      uint32_t sum = 0;
      for (int64_t i = first; i < args.count; i += args.blocks * kThreads) {
        const Line line = args.lines[i];
        GODWIT_UNROLL
        for (int word = 0; word < 4; ++word) sum += line.words[word];
      }
      args.out[first] = sum;
    });
  }
};

}  // namespace godwit::cuda
