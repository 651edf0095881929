// Rotary position encoding of query or key rows into head-major order (ops/attention.h), a block
// for each token and head. The operations of a number are those of kernels::rotate_half, so the
// bits are, too.
#pragma once

#include <cstdint>

#include "cuda/kernels/block.h"
#include "tensor/dtype.h"

namespace godwit::cuda {

struct Rotate {
  static constexpr const char* kName = "Rotate";
  static constexpr int kThreads = 64;
  struct Args {
    const float* x;  // [tokens, heads * head_dim]
    int64_t x_stride;
    int64_t tokens;
    int64_t group;  // heads that share a KV head
    int64_t head_dim;
    const float* cos;  // [tokens, half], as sin is
    const float* sin;
    int64_t half;              // of the rotated dimensions: pair i is (i, i + half)
    const float* query_scale;  // [tokens], or null
    const float* query_gain;   // [head_dim], or null
    bool rounded;              // to bf16, as queries of bf16 keys are
    float* out;                // [tokens * heads, head_dim]
    int64_t out_stride;
  };
  struct Shared {};

  template <class Block>
  GODWIT_DEVICE static void Run(const Block& block, const Args& args) {
    block.ForThreads([&](int thread) {
      const int64_t token = block.x(), head = block.y();
      const float* const x = args.x + token * args.x_stride + head * args.head_dim;
      const int64_t row =
          (head / args.group * args.tokens + token) * args.group + head % args.group;
      float* const out = args.out + row * args.out_stride;
      for (int64_t d = thread; d < args.head_dim; d += kThreads) {
        float y = Rotated(args, token, x, d);
        if (args.query_gain != nullptr) y *= args.query_gain[d];
        if (args.query_scale != nullptr) y *= args.query_scale[token];
        out[d] = args.rounded ? ToFloat(ToBF16(y)) : y;
      }
    });
  }

 private:
  GODWIT_DEVICE static float Rotated(const Args& args, int64_t token, const float* x, int64_t d) {
    if (d >= 2 * args.half) return x[d];
    const int64_t pair = d % args.half;
    const float cos = args.cos[token * args.half + pair];
    const float sin = args.sin[token * args.half + pair];
    return d < args.half ? x[d] * cos - x[d + args.half] * sin
                         : x[d] * cos + x[d - args.half] * sin;
  }
};

}  // namespace godwit::cuda
