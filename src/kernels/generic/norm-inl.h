// Norms of one row, over Vec. Include after one of vec/*.h.
#pragma once

#include "kernels/generic/elementwise-inl.h"

namespace godwit::kernels {
namespace {

// sum of function(x[i]), in four chains whose elements depend on n alone. function(0) need not be
// zero: the lanes past the end do not count.
template <class Function>
GODWIT_INLINE float SumOf(const float* x, int64_t n, Function function) {
  Vec s0 = Zero(), s1 = Zero(), s2 = Zero(), s3 = Zero();
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = Add(s0, function(Load(x + i)));
    s1 = Add(s1, function(Load(x + i + kLanes)));
    s2 = Add(s2, function(Load(x + i + 2 * kLanes)));
    s3 = Add(s3, function(Load(x + i + 3 * kLanes)));
  }
  for (; i + kLanes <= n; i += kLanes) s0 = Add(s0, function(Load(x + i)));
  if (i < n) {
    const Vec last = function(LoadFirst(x + i, n - i));
    s0 = Add(s0, Select(LanesBetween(0, n - i), last, Zero()));
  }
  return ReduceAdd(Add(Add(s0, s1), Add(s2, s3)));
}

GODWIT_INLINE float InverseSqrt(float x) { return First(Div(Set1(1.0f), Sqrt(Set1(x)))); }

void RmsNorm(const float* x, const float* weight, float eps, int64_t n, float* out) noexcept {
  const float mean_square = SumOf(x, n, [](Vec v) { return Mul(v, v); }) / static_cast<float>(n);
  const Vec scale = Set1(InverseSqrt(mean_square + eps));
  Map2(x, weight, n, out, [&](Vec v, Vec w) { return Mul(Mul(v, scale), w); });
}

void LayerNorm(const float* x, const float* weight, const float* bias, float eps, int64_t n,
               float* out) noexcept {
  const Vec mean = Set1(SumOf(x, n, [](Vec v) { return v; }) / static_cast<float>(n));
  const auto squared_distance = [&](Vec v) {
    const Vec distance = Sub(v, mean);
    return Mul(distance, distance);
  };
  const float variance = SumOf(x, n, squared_distance) / static_cast<float>(n);
  const Vec scale = Set1(InverseSqrt(variance + eps));
  Map2(x, weight, n, out, [&](Vec v, Vec w) { return Mul(Mul(Sub(v, mean), scale), w); });
  if (bias != nullptr) AddRows(out, bias, n, out);
}

}  // namespace
}  // namespace godwit::kernels
