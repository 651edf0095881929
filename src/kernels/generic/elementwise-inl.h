// Elementwise kernels and the rotation of positions, over Vec. Include after one of vec/*.h.
#pragma once

#include "kernels/generic/map-inl.h"

namespace godwit::kernels {
namespace {

void AddRows(const float* a, const float* b, int64_t n, float* out) noexcept {
  Map2(a, b, n, out, [](Vec x, Vec y) { return Add(x, y); });
}

void Multiply(const float* a, const float* b, int64_t n, float* out) noexcept {
  Map2(a, b, n, out, [](Vec x, Vec y) { return Mul(x, y); });
}

// x stands second in Max and in Min, which then return its NaN.
void Clamp(const float* x, float limit, int64_t n, float* out) noexcept {
  Map(x, n, out, [&](Vec v) { return Min(Set1(limit), Max(Set1(-limit), v)); });
}

void Relu(const float* x, int64_t n, float* out) noexcept {
  Map(x, n, out, [](Vec v) { return Max(Zero(), v); });
}

// The rotation of vectors `low` and `high` of two halves, each n long, by the angle's cosine and
// sine.
GODWIT_INLINE Vec RotatedLow(Vec low, Vec high, Vec cos, Vec sin) {
  return MulSub(low, cos, Mul(high, sin));
}
GODWIT_INLINE Vec RotatedHigh(Vec low, Vec high, Vec cos, Vec sin) {
  return MulAdd(high, cos, Mul(low, sin));
}

void RotateHalf(const float* cos, const float* sin, int64_t half, float* x) noexcept {
  float* y = x + half;
  int64_t i = 0;
  for (; i + kLanes <= half; i += kLanes) {
    const Vec low = Load(x + i), high = Load(y + i), c = Load(cos + i), s = Load(sin + i);
    Store(x + i, RotatedLow(low, high, c, s));
    Store(y + i, RotatedHigh(low, high, c, s));
  }
  if (const int64_t n = half - i; n > 0) {
    const Vec low = LoadFirst(x + i, n), high = LoadFirst(y + i, n);
    const Vec c = LoadFirst(cos + i, n), s = LoadFirst(sin + i, n);
    StoreFirst(x + i, RotatedLow(low, high, c, s), n);
    StoreFirst(y + i, RotatedHigh(low, high, c, s), n);
  }
}

}  // namespace
}  // namespace godwit::kernels
