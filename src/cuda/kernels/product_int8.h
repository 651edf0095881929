// The product of int8 rows with a packed int8 weight, as GemmArgs (kernels/kernel_table.h) defines
// it. There are two kernels: for few rows and, on tensor cores, for many. Integers are exact, and
// both have the bits of the CPU.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "cuda/kernels/product_tiles.h"
#include "kernels/packing.h"

namespace godwit::cuda {

struct ProductInt8Args {
  const uint32_t* a;      // [rows, k] int8 in quads, with zeros behind k
  int64_t a_stride;       // quads between rows
  const float* a_scales;  // [rows]
  const uint32_t* w;      // packed panels: [panel][k / 4][column] quads of w + 128
  const float* w_scales;  // [columns]
  const float* bias;      // [columns] or null
  float* out;             // [rows, columns]
  int64_t out_stride;
  int64_t rows;
  int64_t k;
  int64_t columns;

  GODWIT_DEVICE int64_t quads() const { return (k + kernels::kQuad - 1) / kernels::kQuad; }
  // Four weights of a column. quad: of the panel.
  GODWIT_DEVICE uint32_t WeightsAt(int64_t panel, int64_t quad, int column) const {
    return w[(panel * quads() + quad) * kPanel + column] ^ 0x80808080u;
  }
  GODWIT_DEVICE void Set(int64_t row, int64_t column, int32_t dot) const {
    if (row >= rows || column >= columns) return;
    const float x = (static_cast<float>(dot) * w_scales[column]) * a_scales[row];
    out[row * out_stride + column] = bias != nullptr ? x + bias[column] : x;
  }
};

// A block computes kRows rows of a panel. Its threads are a column each, in kLanes lanes that
// share k.
struct ProductInt8Few {
  static constexpr const char* kName = "ProductInt8Few";
  static constexpr int kLanes = 8;
  static constexpr int kRows = 8;
  static constexpr int kThreads = kLanes * kPanel;
  using Args = ProductInt8Args;
  struct Shared {
    int32_t dots[kLanes][kRows][kPanel];
  };
  struct Dots {
    int32_t of_row[kRows];
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t first_row = block.y() * kRows;
    block.ForThreads([&](int thread) {
      const int lane = thread / kPanel, column = thread % kPanel;
      const Dots dots = DotsOf(args, block.x(), column, lane, first_row);
      GODWIT_UNROLL
      for (int row = 0; row < kRows; ++row) shared.dots[lane][row][column] = dots.of_row[row];
    });
    block.ForThreads([&](int thread) {
      int32_t dot = 0;
      GODWIT_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) {
        dot += shared.dots[lane][thread / kPanel][thread % kPanel];
      }
      args.Set(first_row + thread / kPanel, block.x() * kPanel + thread % kPanel, dot);
    });
  }
  static_assert(kRows == kLanes);

 private:
  // The lane's share of the products of one column: every kLanes-th quad.
  GODWIT_DEVICE static Dots DotsOf(const Args& args, int64_t panel, int column, int lane,
                                   int64_t first_row) {
    Dots dots = {};
    const uint32_t* const a = args.a + first_row * args.a_stride;
    for (int64_t quad = lane; quad < args.quads(); quad += kLanes) {
      const uint32_t weights = args.WeightsAt(panel, quad, column);
      GODWIT_UNROLL
      for (int row = 0; row < kRows; ++row) {
        if (first_row + row >= args.rows) break;
        dots.of_row[row] = DotSigned(weights, a[row * args.a_stride + quad], dots.of_row[row]);
      }
    }
    return dots;
  }
};

// A block computes a tile of kRows rows and a panel, from pieces of both in shared memory. A warp
// has 16 of the rows.
struct ProductInt8Many {
  static constexpr const char* kName = "ProductInt8Many";
  static constexpr int kWarps = 4;
  static constexpr int kRows = kWarps * kTileRows;
  static constexpr int kThreads = kWarps * kWarpThreads;
  static constexpr int kPieceQuads = 2 * kTileWords;
  using Args = ProductInt8Args;
  using Shared = TilePieces<kRows, kPieceQuads>;

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    Shared& shared = block.shared();
    const int64_t quads = args.quads(), first_row = block.x() * kRows;
    TileSums<Block, TileInts> sums;
    block.ForThreadsAlone([&](int thread) { sums.Clear(thread); });
    for (int64_t first = 0; first < quads; first += kPieceQuads) {
      // Words behind the end are zeros, which leave a sum as it is.
      block.ForThreads([&](int thread) {
        shared.template Load<kThreads>(
            thread,
            [&](int row, int quad) -> uint32_t {
              const bool inside = first_row + row < args.rows && first + quad < quads;
              return inside ? args.a[(first_row + row) * args.a_stride + first + quad] : 0;
            },
            [&](int quad, int column) -> uint32_t {
              return first + quad < quads ? args.WeightsAt(block.y(), first + quad, column) : 0;
            });
      });
      GODWIT_UNROLL
      for (int half = 0; half < kPieceQuads; half += kTileWords) {
        AddTiles(
            block,
            [&](int thread, int row, int quad) {
              return shared.a[thread / kWarpThreads * kTileRows + row][half + quad];
            },
            [&](int, int quad, int column) { return shared.w[half + quad][column]; },
            [&](const auto& a, const auto& b, auto& c) {
              block.template MultiplyInts</*kSignedB=*/true>(a, b, c);
            },
            sums);
      }
    }
    block.ForThreads([&](int thread) {
      const int64_t row = first_row + thread / kWarpThreads * kTileRows;
      sums.ForEach(thread, [&](int i, int column, int32_t dot) {
        args.Set(row + i, block.y() * kPanel + column, dot);
      });
    });
  }
};

}  // namespace godwit::cuda
