// Products of grouped weights by SDOT: signed codes. Those of at most 6 bits are the same bytes in
// both forms. Include after vec/neon.h.
#pragma once

#include "kernels/gemm/groups_dot-inl.h"
#include "kernels/gemm/quads_signed-inl.h"

namespace godwit::kernels {
namespace {

struct SignedQuads {
  static constexpr CodeForm kForm = CodeForm::kSigned;
  static GODWIT_INLINE Vec AddProducts(Vec a, Vec w, Vec sum) {
    return AddSignedQuadProducts(a, w, sum);
  }
};
using SignedDotQuads = DotQuads<SignedQuads>;
template <Codes kCodes, bool kCentred>
using SignedCodesOf = DotCodesOf<SignedQuads, kCodes, kCentred>;

}  // namespace
}  // namespace godwit::kernels
