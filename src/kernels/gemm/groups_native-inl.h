// Products of grouped weights by VPDPBUSD. Include after vec/avx512.h.
#pragma once

#include "kernels/gemm/quads_native-inl.h"

namespace godwit::kernels {
namespace {

struct NativeQuads : FetchedFar {
  static constexpr int64_t kMost = kMaxGroup;
  static GODWIT_INLINE Vec Start(Vec first) { return first; }
  static GODWIT_INLINE Vec Add(Vec a, Vec w, Vec sum) { return AddQuadProducts(w, a, sum); }
  static GODWIT_INLINE Vec ToInts(Vec sum, Vec /*first*/) { return sum; }
};

}  // namespace
}  // namespace godwit::kernels
