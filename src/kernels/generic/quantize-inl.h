// Rows to int8, over Vec. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// Zero, or NaN where x is not finite.
GODWIT_INLINE Vec Finiteness(Vec x) { return Mul(x, Zero()); }

float LargestMagnitude(const float* x, int64_t n) noexcept {
  Vec largest = Zero(), finiteness = Zero();
  const auto take = [&](Vec v) {
    largest = Max(largest, Abs(v));
    finiteness = Add(finiteness, Finiteness(v));
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) take(Load(x + i));
  if (i < n) take(LoadFirst(x + i, n - i));
  return ReduceMax(largest) + ReduceAdd(finiteness);
}

QuantizedSum Quantize(const float* x, float factor, int64_t n, int8_t* out) noexcept {
  Vec sum = Zero(), finiteness = Zero();
  // Bounded before it is rounded: the bounds are integers, so the order does not matter, and what
  // does not fit an int32 never gets there.
  const auto quantized = [&](Vec v) {
    finiteness = Add(finiteness, Finiteness(v));
    const Vec bounded = Min(Set1(127.0f), Max(Set1(-127.0f), Mul(v, Set1(factor))));
    const Vec ints = FloatsToInts(bounded);
    sum = AddInts(sum, ints);
    return ints;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) StoreBytes(out + i, quantized(Load(x + i)));
  if (i < n) {
    const int64_t bytes = (n - i + kQuad - 1) / kQuad * kQuad;
    StoreFirstBytes(out + i, quantized(LoadFirst(x + i, n - i)), bytes);
  }
  uint32_t lanes[kLanes];  // unsigned, since what a NaN becomes may overflow; its row is refused
  __builtin_memcpy(lanes, &sum, sizeof(lanes));
  uint32_t total = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) total += lanes[lane];
  const float zero = ReduceAdd(finiteness);
  return {.sum = static_cast<int32_t>(total), .finite = zero == zero};
}

}  // namespace
}  // namespace godwit::kernels
