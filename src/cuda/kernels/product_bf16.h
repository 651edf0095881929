// The product of bf16 rows with a packed bf16 weight (kernels/packing.h), on tensor cores. There
// are two kernels of the same bits: for few rows and for many.
//
// The sum over k is cut into parts of kPartDepth. A part begins at 0 and adds tiles of 16 numbers,
// k ascending (EmulatedBlock::MultiplyTiles). The parts are added in ascending order, then the
// bias. So the bits depend neither on the number of rows, nor on the kernel, and warps may share a
// long sum. A word of a panel is a word of TileB as it is.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/product_tiles.h"

namespace godwit::cuda {

struct ProductBF16Args {
  const uint32_t* a;  // [rows, k] bf16 in pairs, with a zero behind an odd k
  int64_t a_stride;   // pairs between rows
  const uint32_t* w;  // packed panels: [panel][k / 2][column] pairs
  const float* bias;  // [columns] or null
  float* out;         // [rows, columns]
  int64_t out_stride;
  int64_t rows;
  int64_t k;
  int64_t columns;

  GODWIT_DEVICE int64_t pairs() const { return (k + 1) / 2; }
  GODWIT_DEVICE void Set(int64_t row, int64_t column, float sum) const {
    if (row >= rows || column >= columns) return;
    out[row * out_stride + column] = bias != nullptr ? sum + bias[column] : sum;
  }
};

inline constexpr int64_t kPartDepth = 256;
inline constexpr int64_t kPartPairs = kPartDepth / 2;

template <class Block>
using FloatSums = TileSums<Block, TileC>;

// Adds the products of a tile's words by AddTiles.
template <class Block, class LoadA, class LoadW>
GODWIT_DEVICE void AddFloats(const Block& block, const LoadA& word_of_a, const LoadW& word_of_w,
                             FloatSums<Block>& sums) {
  AddTiles(
      block, word_of_a, word_of_w,
      [&](const auto& a, const auto& b, auto& c) { block.MultiplyTiles(a, b, c); }, sums);
}

// A block computes 16 rows of a panel. Each of its warps adds up one part of the sum.
struct ProductBF16Few {
  static constexpr const char* kName = "ProductBF16Few";
  static constexpr int kWarps = 8;
  static constexpr int kRows = kTileRows;
  static constexpr int kThreads = kWarps * kWarpThreads;
  static constexpr int kEach = kRows * kPanel / kThreads;  // outputs of a thread
  using Args = ProductBF16Args;
  struct Shared {
    float parts[kWarps][kRows * kPanel];
  };
  struct Outputs {
    float of[kEach];
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t pairs = args.pairs(), first_row = block.y() * kRows;
    PerThread<Block, Outputs> total;
    block.ForThreads([&](int thread) { total[thread] = {}; });
    for (int64_t first = 0; first < pairs; first += kWarps * kPartPairs) {
      AddParts(block, args, first_row, first);
      block.ForThreads([&](int thread) {
        for (int warp = 0; warp < kWarps && first + warp * kPartPairs < pairs; ++warp) {
          GODWIT_UNROLL
          for (int i = 0; i < kEach; ++i) {
            total[thread].of[i] += shared.parts[warp][thread + i * kThreads];
          }
        }
      });
    }
    block.ForThreads([&](int thread) {
      GODWIT_UNROLL
      for (int i = 0; i < kEach; ++i) {
        const int at = thread + i * kThreads;
        args.Set(first_row + at / kPanel, block.x() * kPanel + at % kPanel, total[thread].of[i]);
      }
    });
  }

 private:
  // Puts a part for each warp, from pair `first` on, into shared memory.
  template <class Block>
  GODWIT_DEVICE static void AddParts(const Block& block, const Args& args, int64_t first_row,
                                     int64_t first) {
    Shared& shared = block.shared();
    const int64_t pairs = args.pairs();
    const uint32_t* const w = args.w + block.x() * pairs * kPanel;
    FloatSums<Block> sums;
    block.ForThreadsAlone([&](int thread) { sums.Clear(thread); });
    for (int64_t i = 0; i < kPartPairs && first + i < pairs; i += kTileWords) {
      // Words behind the end are zeros, which leave a sum as it is.
      AddFloats(
          block,
          [&](int thread, int row, int pair) -> uint32_t {
            const int64_t at = first + thread / kWarpThreads * kPartPairs + i + pair;
            const bool inside = first_row + row < args.rows && at < pairs;
            return inside ? args.a[(first_row + row) * args.a_stride + at] : 0;
          },
          [&](int thread, int pair, int column) -> uint32_t {
            const int64_t at = first + thread / kWarpThreads * kPartPairs + i + pair;
            return at < pairs ? w[at * kPanel + column] : 0;
          },
          sums);
    }
    block.ForThreads([&](int thread) {
      float* const part = shared.parts[thread / kWarpThreads];
      sums.ForEach(thread,
                   [&](int row, int column, float sum) { part[row * kPanel + column] = sum; });
    });
  }
};

// A block computes a tile of kRows rows and a panel, from pieces of both in shared memory. A warp
// has 16 of the rows.
struct ProductBF16Many {
  static constexpr const char* kName = "ProductBF16Many";
  static constexpr int kWarps = 4;
  static constexpr int kRows = kWarps * kTileRows;
  static constexpr int kThreads = kWarps * kWarpThreads;
  static constexpr int kPiecePairs = 2 * kTileWords;
  static_assert(kPartPairs % kPiecePairs == 0);
  using Args = ProductBF16Args;
  using Shared = TilePieces<kRows, kPiecePairs>;

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t pairs = args.pairs(), first_row = block.x() * kRows;
    FloatSums<Block> part, total;
    block.ForThreadsAlone([&](int thread) {
      part.Clear(thread);
      total.Clear(thread);
    });
    for (int64_t first = 0; first < pairs; first += kPiecePairs) {
      block.ForThreads(
          [&](int thread) { Load(args, block.y(), first_row, first, thread, shared); });
      GODWIT_UNROLL
      for (int half = 0; half < kPiecePairs; half += kTileWords) {
        AddFloats(
            block,
            [&](int thread, int row, int pair) {
              return shared.a[thread / kWarpThreads * kTileRows + row][half + pair];
            },
            [&](int, int pair, int column) { return shared.w[half + pair][column]; }, part);
      }
      const bool ends_part = (first + kPiecePairs) % kPartPairs == 0;
      if (!ends_part && first + kPiecePairs < pairs) continue;
      block.ForThreadsAlone([&](int thread) { Move(thread, part, total); });
    }
    block.ForThreads([&](int thread) {
      const int64_t row = first_row + thread / kWarpThreads * kTileRows;
      total.ForEach(thread, [&](int i, int column, float sum) {
        args.Set(row + i, block.y() * kPanel + column, sum);
      });
    });
  }

 private:
  // Words behind the end are zeros, which leave a sum as it is.
  GODWIT_DEVICE static void Load(const Args& args, int64_t panel, int64_t first_row, int64_t first,
                                 int thread, Shared& shared) {
    const int64_t pairs = args.pairs();
    shared.template Load<kThreads>(
        thread,
        [&](int row, int pair) -> uint32_t {
          const bool inside = first_row + row < args.rows && first + pair < pairs;
          return inside ? args.a[(first_row + row) * args.a_stride + first + pair] : 0;
        },
        [&](int pair, int column) -> uint32_t {
          const int64_t at = first + pair;
          return at < pairs ? args.w[(panel * pairs + at) * kPanel + column] : 0;
        });
  }

  template <class Block>
  GODWIT_DEVICE static void Move(int thread, FloatSums<Block>& part, FloatSums<Block>& total) {
    GODWIT_UNROLL
    for (int tile = 0; tile < kPanelTiles; ++tile) {
      GODWIT_UNROLL
      for (int i = 0; i < 4; ++i) {
        total.of_tile[tile][thread].sums[i] += part.of_tile[tile][thread].sums[i];
        part.of_tile[tile][thread].sums[i] = 0;
      }
    }
  }
};

}  // namespace godwit::cuda
