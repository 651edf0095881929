// The matrix product over packed panels of floats. Include after one of vec/*.h.
#pragma once

#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// Sums of a row, from a column on, to the output.
template <class Write = IntoCaches>
GODWIT_INLINE void AddBias(const GemmArgs& args, int64_t row, int64_t column, int64_t columns,
                           const float* sums) {
  float* out = args.out + row * args.out_stride + column;
  const float* bias = args.bias == nullptr ? nullptr : args.bias + column;
  int64_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    const Vec x = Load(sums + c);
    Write::Put(out + c, bias == nullptr ? x : Add(x, Load(bias + c)));
  }
  for (; c < columns; ++c) {
    out[c] = bias == nullptr ? sums[c] : sums[c] + bias[c];
  }
}

template <class Operand>
void Gemm(const GemmArgs& args) {
  RunPanels<Operand>(args, [&](int64_t row, int64_t column, int64_t columns, const float* sums) {
    AddBias(args, row, column, columns, sums);
  });
}

}  // namespace
}  // namespace godwit::kernels
