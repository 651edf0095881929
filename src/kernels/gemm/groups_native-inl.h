// Products of grouped weights by VPDPBUSD or USDOT: unsigned codes. Include after vec/avx512.h or
// vec/neon.h.
#pragma once

#include "kernels/gemm/groups_dot-inl.h"
#include "kernels/gemm/quads_native-inl.h"

namespace godwit::kernels {
namespace {

struct UnsignedQuads {
  static constexpr CodeForm kForm = CodeForm::kUnsigned;
  static GODWIT_INLINE Vec AddProducts(Vec a, Vec w, Vec sum) { return AddQuadProducts(w, a, sum); }
};
using NativeQuads = DotQuads<UnsignedQuads>;
template <Codes kCodes, bool kCentred>
using NativeCodesOf = DotCodesOf<UnsignedQuads, kCodes, kCentred>;

}  // namespace
}  // namespace godwit::kernels
