// The sum of powers of two by which a softmax divides. Include after one of vec/*.h.
#pragma once

#include "kernels/generic/math-inl.h"

namespace godwit::kernels {
namespace {

PowerSum SumPowers(const float* x, int64_t n) noexcept {
  const float nothing = -__builtin_inff();
  // take(what of x stands in the next vector, and -infinity behind the end)
  const auto for_each = [&](auto take) {
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) take(Load(x + i));
    if (i < n) take(Select(LanesBetween(0, n - i), LoadFirst(x + i, n - i), Set1(nothing)));
  };
  Vec most = Set1(nothing);
  for_each([&](Vec part) { most = Max(part, most); });
  const float largest = ReduceMax(most);
  if (largest == nothing) return {.maximum = 0, .sum = 0};
  const float maximum = __builtin_ceilf(largest);
  Vec sum = Zero();
  for_each([&](Vec part) { sum = Add(sum, Exp2</*kRough=*/true>(Sub(part, Set1(maximum)))); });
  return {.maximum = maximum, .sum = ReduceAdd(sum)};
}

}  // namespace
}  // namespace godwit::kernels
