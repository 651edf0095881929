// Conversions between f32 and its halves, over Vec. Include after one of vec/*.h.
#pragma once

#include "kernels/generic/elementwise-inl.h"

namespace godwit::kernels {
namespace {

template <class In, class Out>
void Convert(const In* x, int64_t n, Out* out) noexcept {
  Map(x, n, out, [](Vec v) { return v; });
}

}  // namespace
}  // namespace godwit::kernels
