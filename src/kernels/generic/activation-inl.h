// Activations over Vec. Include after one of vec/*.h.
#pragma once

#include "kernels/generic/elementwise-inl.h"
#include "kernels/generic/math-inl.h"

namespace godwit::kernels {
namespace {

// x / (1 + exp(-z)), through exp(-|z|), which cannot overflow: relative error below 3 ulp plus
// that of z times |z|.
GODWIT_INLINE Vec TimesSigmoid(Vec x, Vec z) {
  const Vec e = Exp(Sub(Zero(), Abs(z)));
  const Vec one = Set1(1.0f);
  return Div(Mul(x, Select(IsNegative(z), e, one)), Add(one, e));
}

void TimesSigmoidRows(const float* x, const float* gate, int64_t n, float* out) noexcept {
  Map2(x, gate, n, out, [](Vec v, Vec z) { return TimesSigmoid(v, z); });
}

void Decays(const float* x, const float* biases, float rate, int64_t n, float* out) noexcept {
  Map2(x, biases, n, out,
       [&](Vec v, Vec bias) { return Exp(Mul(Set1(-rate), Softplus(Add(v, bias)))); });
}

void Silu(const float* x, int64_t n, float* out) noexcept {
  Map(x, n, out, [](Vec v) { return TimesSigmoid(v, v); });
}

// Phi(x) is the tail beyond -x: no cancellation where x is negative.
void GeluErf(const float* x, int64_t n, float* out) noexcept {
  Map(x, n, out, [](Vec v) {
    const Vec tail = NormalTail(Abs(v));
    return Mul(v, Select(IsNegative(v), tail, Sub(Set1(1.0f), tail)));
  });
}

// (1 + tanh(u)) / 2 is the sigmoid of 2 u.
void GeluTanh(const float* x, int64_t n, float* out) noexcept {
  constexpr float kTwiceSqrt2OverPi = 0x1.988454p+0f;
  Map(x, n, out, [](Vec v) {
    const Vec inner =
        MulAdd(Mul(v, v), Set1(0.044715f * kTwiceSqrt2OverPi), Set1(kTwiceSqrt2OverPi));
    return TimesSigmoid(v, Mul(v, inner));
  });
}

}  // namespace
}  // namespace godwit::kernels
