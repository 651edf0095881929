// The int8 matrix product over packed panels. Include after one of vec/*.h.
//
// The register tiles are those of gemm/tile-inl.h. A vector of sums is a vector of int32 in the
// bits of floats. Sums are scaled once the depth is through. The operand multiplies weights that
// are kExcess too high: 128 as they lie in a panel, or 0.
#pragma once

#include "kernels/gemm/rows-inl.h"

namespace godwit::kernels {
namespace {

// One row of sums, in the bits of floats, to the row of `out` that they stand for (kernel_table.h,
// GemmArgs). columns <= kPanelColumns.
template <class Write = IntoCaches, int32_t kExcess = 128>
GODWIT_INLINE void ScaleSums(const GemmArgs& args, int64_t row, int64_t column, int64_t columns,
                             const float* sums) {
  const int32_t correction = kExcess == 0 ? 0 : -kExcess * args.a_sums[row];
  const Vec a_scale = Set1(args.a_scales[row]);
  const float* w_scales = args.w_scales + column;
  const float* bias = args.bias == nullptr ? nullptr : args.bias + column;
  float* out = args.out + row * args.out_stride + column;
  int64_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) {
    const Vec dot = IntsToFloats(AddToInts(Load(sums + c), correction));
    const Vec x = Mul(Mul(dot, Load(w_scales + c)), a_scale);
    Write::Put(out + c, bias == nullptr ? x : Add(x, Load(bias + c)));
  }
  if (const int64_t n = columns - c; n > 0) {
    const Vec dot = IntsToFloats(AddToInts(LoadFirst(sums + c, n), correction));
    const Vec x = Mul(Mul(dot, LoadFirst(w_scales + c, n)), a_scale);
    StoreFirst(out + c, bias == nullptr ? x : Add(x, LoadFirst(bias + c, n)), n);
  }
}

template <class Operand>
void GemmI8(const GemmArgs& args) {
  RunPanels<Operand>(args, [&](int64_t row, int64_t column, int64_t columns, const float* sums) {
    ScaleSums<IntoCaches, Operand::kExcess>(args, row, column, columns, sums);
  });
}

}  // namespace
}  // namespace godwit::kernels
