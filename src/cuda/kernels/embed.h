// Token ids to rows of a table, or of a packed bf16 weight that doubles as one.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"
#include "kernels/packing.h"

namespace godwit::cuda {

struct Embed {
  static constexpr const char* kName = "Embed";
  static constexpr int kThreads = 128;
  struct Args {
    const int32_t* tokens;  // [rows]
    const void* table;      // [table_rows, cols] row-major, or panels of kernels/packing.h
    DType dtype;            // F32, F16 or BF16; panels are BF16
    bool packed;
    int64_t table_rows;
    int64_t cols;
    int64_t first;  // the token of the table's first row; tokens without a row become zeros
    float* out;     // [rows, cols]
    int64_t out_stride;
  };
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    block.ForThreads([&](int thread) {
      const int64_t row = args.tokens[block.x()] - args.first;
      const bool there = row >= 0 && row < args.table_rows;
      float* const out = args.out + block.x() * args.out_stride;
      for (int64_t i = thread; i < args.cols; i += kThreads) {
        out[i] = there ? ElementAt(args.dtype, args.table, Place(args, row, i)) : 0.0f;
      }
    });
  }

 private:
  GODWIT_DEVICE static int64_t Place(const Args& args, int64_t row, int64_t i) {
    if (!args.packed) return row * args.cols + i;
    const int64_t panel_elements = (args.cols + 1) / 2 * 2 * kernels::kPanelColumns;
    return row / kernels::kPanelColumns * panel_elements +
           (i / 2 * kernels::kPanelColumns + row % kernels::kPanelColumns) * 2 + i % 2;
  }
};

}  // namespace godwit::cuda
