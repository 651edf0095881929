// RMS norm: out = x / sqrt(mean(x^2) + epsilon) * weight, a block for each row.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/rows_out.h"

namespace godwit::cuda {

struct RmsNorm {
  static constexpr const char* kName = "RmsNorm";
  static constexpr int kThreads = 256;
  struct Args {
    const float* x;  // [rows, cols], may be the output
    int64_t x_stride;
    const float* weight;  // [cols]
    float epsilon;
    int64_t cols;
    RowsOut out;
  };
  struct Shared {
    WarpResults<kThreads> warps;
  };

  // Every thread adds up the squares of its own columns in ascending order.
  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    const float* const x = args.x + block.x() * args.x_stride;
    PerThread<Block, float> squares;
    block.ForThreads([&](int thread) {
      float sum = 0;
      for (int64_t i = thread; i < args.cols; i += kThreads) sum = std::fma(x[i], x[i], sum);
      squares[thread] = sum;
    });
    SumOfBlock(block, squares, block.shared().warps);
    block.ForThreads([&](int thread) {
      const float mean = squares[thread] / static_cast<float>(args.cols);
      const float scale = 1.0f / std::sqrt(mean + args.epsilon);
      for (int64_t i = thread; i < args.cols; i += kThreads) {
        args.out.Set(block.x(), i, args.cols, x[i] * scale * args.weight[i]);
      }
    });
  }
};

}  // namespace godwit::cuda
