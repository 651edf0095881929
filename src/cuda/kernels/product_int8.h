// The product of int8 rows with a packed int8 weight, as GemmArgs (kernels/kernel_table.h) defines
// it. Integers are exact, and the result has the bits of the CPU.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "kernels/packing.h"

namespace godwit::cuda {

// A block computes kRows rows of a panel. Its threads are a column each, in kLanes lanes that
// share k.
struct ProductInt8 {
  static constexpr const char* kName = "ProductInt8";
  static constexpr int kPanel = static_cast<int>(kernels::kPanelColumns);
  static constexpr int kLanes = 8;
  static constexpr int kRows = 8;
  static constexpr int kThreads = kLanes * kPanel;
  struct Args {
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
  };
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
      const int64_t column = block.x() * kPanel + thread % kPanel;
      const int64_t row = first_row + thread / kPanel;
      if (row >= args.rows || column >= args.columns) return;
      int32_t dot = 0;
      GODWIT_UNROLL
      for (int lane = 0; lane < kLanes; ++lane) {
        dot += shared.dots[lane][thread / kPanel][thread % kPanel];
      }
      const float x = (static_cast<float>(dot) * args.w_scales[column]) * args.a_scales[row];
      args.out[row * args.out_stride + column] = args.bias != nullptr ? x + args.bias[column] : x;
    });
  }
  static_assert(kRows <= kLanes);

 private:
  // The lane's share of the products of one column: every kLanes-th quad.
  GODWIT_DEVICE static Dots DotsOf(const Args& args, int64_t panel, int column, int lane,
                                   int64_t first_row) {
    Dots dots = {};
    const int64_t quads = (args.k + kernels::kQuad - 1) / kernels::kQuad;
    const uint32_t* const w = args.w + panel * quads * kPanel + column;
    const uint32_t* const a = args.a + first_row * args.a_stride;
    for (int64_t quad = lane; quad < quads; quad += kLanes) {
      const uint32_t weights = w[quad * kPanel] ^ 0x80808080u;
      GODWIT_UNROLL
      for (int row = 0; row < kRows; ++row) {
        if (first_row + row >= args.rows) break;
        dots.of_row[row] = DotSigned(weights, a[row * args.a_stride + quad], dots.of_row[row]);
      }
    }
    return dots;
  }
};

}  // namespace godwit::cuda
