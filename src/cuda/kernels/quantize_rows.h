// Rows of floats as int8 with a scale for each block of columns, as ops::QuantizeRow has it, with
// the same bits. A block of threads quantizes a block of a row.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "cuda/kernels/numbers.h"

namespace godwit::cuda {

struct QuantizeRows {
  static constexpr const char* kName = "QuantizeRows";
  static constexpr int kThreads = 128;
  struct Args {
    const float* x;  // [rows, cols]
    int64_t x_stride;
    int64_t cols;
    int64_t block;   // columns that share a scale
    int64_t padded;  // columns of a block in the output; those behind the row's are zeros
    int8_t* out;     // [rows, blocks * padded]
    int64_t out_stride;
    float* scales;  // [rows, blocks]; NaN: the block is not finite
    int64_t blocks;
    int32_t group;        // columns of a group
    int16_t* group_sums;  // [rows, groups of whole blocks], or null: there are no groups
  };
  struct Shared {
    WarpResults<kThreads> warps;
  };

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    const int64_t begin = block.y() * args.block;
    const int64_t n = args.cols - begin < args.block ? args.cols - begin : args.block;
    const float* const x = args.x + block.x() * args.x_stride + begin;
    int8_t* const out = args.out + block.x() * args.out_stride + block.y() * args.padded;
    PerThread<Block, float> largest;  // infinity: a number is not finite
    block.ForThreads([&](int thread) {
      float mine = 0;
      for (int64_t i = thread; i < n; i += kThreads) {
        const float magnitude = std::fabs(x[i]);
        if (!(magnitude <= kLargestFloat)) mine = kLargestFloat * 2;
        if (magnitude > mine) mine = magnitude;
      }
      largest[thread] = mine;
    });
    MaxOfBlock(block, largest, block.shared().warps);
    block.ForThreads([&](int thread) {
      const float all = largest[thread];
      const bool zeros = all < 0x1p-120f || all > kLargestFloat;
      const float factor = zeros ? 0.0f : 127.0f / all;
      for (int64_t i = thread; i < args.padded; i += kThreads) {
        out[i] = i < n && !zeros ? Rounded(x[i] * factor) : int8_t{0};
      }
      if (thread != 0) return;
      args.scales[block.x() * args.blocks + block.y()] = all > kLargestFloat ? all - all
                                                         : zeros             ? 0.0f
                                                                             : all / 127.0f;
    });
    if (args.group_sums == nullptr) return;
    block.ForThreads([&](int thread) {
      const int64_t groups = args.padded / args.group;
      int16_t* const sums = args.group_sums + (block.x() * args.blocks + block.y()) * groups;
      for (int64_t group = thread; group < groups; group += kThreads) {
        int32_t sum = 0;
        for (int64_t i = 0; i < args.group; ++i) sum += out[group * args.group + i];
        sums[group] = static_cast<int16_t>(sum);
      }
    });
  }

 private:
  GODWIT_DEVICE static int8_t Rounded(float x) {
    const float bounded = x < -127.0f ? -127.0f : x > 127.0f ? 127.0f : x;
    return static_cast<int8_t>(std::rint(bounded));
  }
};

}  // namespace godwit::cuda
