// The Hadamard rotation of keys and queries, and the scores of centres, over Vec. Include after one
// of vec/*.h.
#pragma once

#include "kernels/generic/elementwise-inl.h"

namespace godwit::kernels {
namespace {

// Butterflies of one stride within a vector's width, as compilers turn them into shuffles.
template <int64_t kStride>
GODWIT_INLINE void NearButterflies(int64_t n, float* x) {
  for (int64_t i = 0; i < n; i += 2 * kStride) {
    for (int64_t j = i; j < i + kStride; ++j) {
      const float low = x[j], high = x[j + kStride];
      x[j] = low + high;
      x[j + kStride] = low - high;
    }
  }
}

void Hadamard(int64_t n, float* x) noexcept {
  const int64_t block = HadamardBlock(n);
  if (block > 1) NearButterflies<1>(n, x);
  if (block > 2) NearButterflies<2>(n, x);
  if (kLanes > 4 && block > 4) NearButterflies<4>(n, x);
  if (kLanes > 8 && block > 8) NearButterflies<8>(n, x);
  for (int64_t stride = kLanes; stride < block; stride *= 2) {
    for (int64_t i = 0; i < n; i += 2 * stride) {
      for (int64_t j = i; j < i + stride; j += kLanes) {
        const Vec low = Load(x + j), high = Load(x + j + stride);
        Store(x + j, Add(low, high));
        Store(x + j + stride, Sub(low, high));
      }
    }
  }
  const Vec factor = Set1(HadamardFactor(block));
  Map(x, n, x, [&](Vec v) { return Mul(v, factor); });
}

void CentreScores(const CentreScoresArgs& args) noexcept {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* const q = args.q + row * args.q_stride;
    Vec sum = Zero();
    int64_t d = 0;
    for (; d + kLanes <= args.head_dim; d += kLanes) {
      sum = MulAdd(Load(q + d), Load(args.centre + d), sum);
    }
    if (const int64_t rest = args.head_dim - d; rest > 0) {
      sum = MulAdd(LoadFirst(q + d, rest), LoadFirst(args.centre + d, rest), sum);
    }
    const Vec score = Set1(args.scale * ReduceAdd(sum));
    float* const bias = args.bias + row * args.bias_stride;
    for (int64_t j = 0; j < kTileTokens; j += kLanes) Store(bias + j, Add(Load(bias + j), score));
  }
}

}  // namespace
}  // namespace godwit::kernels
