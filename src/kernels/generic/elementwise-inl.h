// Elementwise kernels and the rotation of positions, over Vec. Include after one of vec/*.h.
#pragma once

namespace godwit::kernels {
namespace {

// out[i] = function(x[i]). A partial vector at the end goes through the same lanes, so an element
// gets the same bits wherever it stands.
template <class In, class Out, class Function>
GODWIT_INLINE void Map(const In* x, int64_t n, Out* out, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, function(Load(x + i)));
  if (i < n) StoreFirst(out + i, function(LoadFirst(x + i, n - i)), n - i);
}

template <class Function>
GODWIT_INLINE void Map2(const float* a, const float* b, int64_t n, float* out, Function function) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) Store(out + i, function(Load(a + i), Load(b + i)));
  if (i < n) {
    const Vec value = function(LoadFirst(a + i, n - i), LoadFirst(b + i, n - i));
    StoreFirst(out + i, value, n - i);
  }
}

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

// Of two halves, each n long, the vectors `low` and `high` and the angle's cosine and sine.
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
