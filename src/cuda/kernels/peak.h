// Kernels whose time tells a GPU's limits: products on tensor cores without memory, and the reading
// of memory. Each returns a number that shows what it did.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/kernels/block.h"

namespace godwit::cuda {

// Chains of products of a warp, none of which waits for another.
inline constexpr int kPeakChains = 8;

struct PeakArgs {
  int64_t rounds;
  float* out;  // [blocks, kThreads]: the sums of a thread's chains, without what they began with
};

// Every number of every tile is 1, so that a chain's sums grow by the depth of a tile in each
// round. Tile: TileC or TileInts. kOnes: a word of ones.
template <class Tile, uint32_t kOnes>
struct Peak {
  static constexpr int kThreads = 256;
  using Args = PeakArgs;
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    PerThread<Block, TileA> a;
    PerThread<Block, TileB> b;
    PerThread<Block, Tile> tiles[kPeakChains];
    block.ForThreadsAlone([&](int thread) {
      a[thread] = {{kOnes, kOnes, kOnes, kOnes}};
      b[thread] = {{kOnes, kOnes}};
      // Chains begin differently, or a compiler would compute one of them.
      GODWIT_UNROLL
      for (int chain = 0; chain < kPeakChains; ++chain) {
        tiles[chain][thread] = {};
        tiles[chain][thread].sums[0] += chain;
      }
    });
    for (int64_t round = 0; round < args.rounds; ++round) {
      GODWIT_UNROLL
      for (int chain = 0; chain < kPeakChains; ++chain) {
        if constexpr (std::is_same_v<Tile, TileInts>) {
          block.template MultiplyInts</*kSignedB=*/true>(a, b, tiles[chain]);
        } else {
          block.MultiplyTiles(a, b, tiles[chain]);
        }
      }
    }
    block.ForThreads([&](int thread) {
      float all = 0;
      GODWIT_UNROLL
      for (int chain = 0; chain < kPeakChains; ++chain) {
        GODWIT_UNROLL
        for (int i = 0; i < 4; ++i) all += static_cast<float>(tiles[chain][thread].sums[i]);
      }
      constexpr int kBegun = kPeakChains * (kPeakChains - 1) / 2;
      args.out[block.x() * kThreads + thread] = all - kBegun;
    });
  }
};

struct PeakBF16 : Peak<TileC, 0x3f803f80u> {
  static constexpr const char* kName = "PeakBF16";
  static constexpr int kDepth = 16;  // multiply-adds of a number of a tile, each round
};

struct PeakInt8 : Peak<TileInts, 0x01010101u> {
  static constexpr const char* kName = "PeakInt8";
  static constexpr int kDepth = 32;
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
