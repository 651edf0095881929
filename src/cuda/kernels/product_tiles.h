// Tiles of products on tensor cores, for every type of number: what kernels for many rows share.
//
// A word has numbers that lie side by side in k, two of bf16 or four of int8. Rows, and panels of
// packed weights (kernels/packing.h), are such words as they lie in memory: [row][k / numbers] and
// [k / numbers][column].
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "kernels/packing.h"

namespace godwit::cuda {

inline constexpr int kPanel = static_cast<int>(kernels::kPanelColumns);
// Rows, words of k and columns of the tiles that tensor cores multiply, and their number in a
// panel.
inline constexpr int kTileRows = 16;
inline constexpr int kTileWords = 8;
inline constexpr int kTileColumns = 8;
inline constexpr int kPanelTiles = kPanel / kTileColumns;

// Where sum i of a thread lies in its tile.
GODWIT_DEVICE int TileRow(int thread, int i) { return thread % kWarpThreads / 4 + i / 2 * 8; }
GODWIT_DEVICE int TileColumn(int thread, int i) { return thread % 4 * 2 + i % 2; }

// The sums of a warp: 16 rows of kTiles tiles side by side. Sums: TileC or TileInts.
template <class Block, class Sums, int kTiles = kPanelTiles>
struct TileSums {
  PerThread<Block, Sums> of_tile[kTiles];

  GODWIT_DEVICE void Clear(int thread) {
    GODWIT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) of_tile[tile][thread] = {};
  }
  // Calls body(row, column, sum) for the thread's sums; rows and columns are those of the warp.
  template <class Body>
  GODWIT_DEVICE void ForEach(int thread, const Body& body) const {
    GODWIT_UNROLL
    for (int tile = 0; tile < kTiles; ++tile) {
      GODWIT_UNROLL
      for (int i = 0; i < 4; ++i) {
        body(TileRow(thread, i), tile * kTileColumns + TileColumn(thread, i),
             of_tile[tile][thread].sums[i]);
      }
    }
  }
};

// Adds the products of kTileWords words of k. word_of_a(thread, row, word) and word_of_w(thread,
// word, column) load words of the warp's rows and columns. multiply(a, b, sums) is an operation of
// the block.
template <class Block, class Sums, int kTiles, class LoadA, class LoadW, class Multiply>
GODWIT_DEVICE void AddTiles(const Block& block, const LoadA& word_of_a, const LoadW& word_of_w,
                            const Multiply& multiply, TileSums<Block, Sums, kTiles>& sums) {
  PerThread<Block, TileA> a;
  block.ForThreadsAlone([&](int thread) {
    const int row = thread % kWarpThreads / 4, word = thread % 4;
    a[thread] = {{word_of_a(thread, row, word), word_of_a(thread, row + 8, word),
                  word_of_a(thread, row, word + 4), word_of_a(thread, row + 8, word + 4)}};
  });
  GODWIT_UNROLL
  for (int tile = 0; tile < kTiles; ++tile) {
    PerThread<Block, TileB> b;
    block.ForThreadsAlone([&](int thread) {
      const int column = tile * kTileColumns + thread % kWarpThreads / 4, word = thread % 4;
      b[thread] = {{word_of_w(thread, word, column), word_of_w(thread, word + 4, column)}};
    });
    multiply(a, b, sums.of_tile[tile]);
  }
}

// kWords words of kRows rows and of a panel, in shared memory. Rows are longer than their words, so
// that words which a warp reads at once lie in all banks.
template <int kRows, int kWords>
struct TilePieces {
  uint32_t a[kRows][kWords + 4];
  uint32_t w[kWords][kPanel + 8];

  // A phase of kThreads threads. word_of_a(row, word) and word_of_w(word, column) load words.
  template <int kThreads, class LoadA, class LoadW>
  GODWIT_DEVICE void Load(int thread, const LoadA& word_of_a, const LoadW& word_of_w) {
    for (int i = thread; i < kRows * kWords; i += kThreads) {
      a[i / kWords][i % kWords] = word_of_a(i / kWords, i % kWords);
    }
    for (int i = thread; i < kWords * kPanel; i += kThreads) {
      w[i / kPanel][i % kPanel] = word_of_w(i / kPanel, i % kPanel);
    }
  }
};

}  // namespace godwit::cuda
