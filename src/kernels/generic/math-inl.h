// exp, softplus and the tail of the normal distribution, over Vec. Include after one of vec/*.h.
//
// The coefficients are minimax fits made for godwit, in relative error. NaN propagates.
#pragma once

namespace godwit::kernels {
namespace {

// Largest error 1 ulp (of subnormals too); Exp(0) is 1 exactly, overflow gives infinity and
// underflow zero. x = n ln(2) + r, exp(r) = 1 + r + r^2 q(r).
GODWIT_INLINE Vec Exp(Vec x) {
  // Both bounds are past the last result that is not infinity or zero. x stands second: Max and
  // Min then return its NaN.
  const Vec bounded = Min(Set1(89.0f), Max(Set1(-104.0f), x));
  const Vec n = Round(Mul(bounded, Set1(0x1.715476p+0f)));
  // ln(2) in two parts. The first has few bits, so that n times it is exact.
  Vec r = NegMulAdd(n, Set1(0x1.62e4p-1f), bounded);
  r = NegMulAdd(n, Set1(0x1.7f7d1cp-20f), r);
  Vec q = Set1(1.38146279e-3f);
  q = MulAdd(q, r, Set1(8.36871658e-3f));
  q = MulAdd(q, r, Set1(4.1668389e-2f));
  q = MulAdd(q, r, Set1(1.66665211e-1f));
  q = MulAdd(q, r, Set1(4.9999994e-1f));
  const Vec one = Set1(1.0f);
  return ScaleByPowerOf2(MulAdd(MulAdd(q, r, one), r, one), n);
}

// 2^x for x <= 128; 2^n is exact, and below -126 zero or subnormal. x = n + r with r in [0, 1); the
// polynomial is 1 at 0. Largest relative error 2e-7; of the rough one, for results that are rounded
// to a few bits, 1e-4.
template <bool kRough = false>
GODWIT_INLINE Vec Exp2(Vec x) {
  const Vec r = Fraction(x);
  Vec p;
  if constexpr (kRough) {
    p = MulAdd(Set1(0.0770670420f), r, Set1(0.2276449912f));
    p = MulAdd(p, r, Set1(0.6951167864f));
  } else {
    p = MulAdd(Set1(0.001867130072f), r, Set1(0.009017030316f));
    p = MulAdd(p, r, Set1(0.05579991311f));
    p = MulAdd(p, r, Set1(0.2401644502f));
    p = MulAdd(p, r, Set1(0.6931513118f));
  }
  return ScaleByFloor(MulAdd(p, r, Set1(1.0f)), x);
}

// log(1 + exp(z)), through exp(-|z|), which cannot overflow. Relative error below 4e-7. log(1 + e)
// is twice the series of odd powers of s = e / (2 + e), which is at most 1/3.
GODWIT_INLINE Vec Softplus(Vec z) {
  const Vec e = Exp(Sub(Zero(), Abs(z)));
  const Vec s = Div(e, Add(e, Set1(2.0f)));
  const Vec square = Mul(s, s);
  Vec p = Set1(2.0f / 15);
  for (int odd = 13; odd > 0; odd -= 2) {
    p = MulAdd(p, square, Set1(2 / static_cast<float>(odd)));
  }
  return MulAdd(p, s, Max(Zero(), z));
}

// The probability that a standard normal variable exceeds x, for x >= 0: exp(-x^2 / 2) R(x).
// Relative error below 4e-7 while the result is a normal float. (1 + x) R(x) varies slowly and is
// a polynomial of t = (x - 4) / (x + 4).
GODWIT_INLINE Vec NormalTail(Vec x) {
  const Vec bounded = Min(Set1(14.5f), x);  // the tail there is below 1e-46
  const Vec square = Mul(bounded, bounded);
  const Vec rest = MulSub(bounded, bounded, square);  // x^2 = square + rest
  const Vec density = Exp(Mul(square, Set1(-0.5f)));
  const Vec corrected = MulAdd(Mul(density, rest), Set1(-0.5f), density);
  const Vec t = Div(Sub(bounded, Set1(4.0f)), Add(bounded, Set1(4.0f)));
  Vec p = Set1(-7.16134673e-5f);
  p = MulAdd(p, t, Set1(-6.05591267e-5f));
  p = MulAdd(p, t, Set1(6.92862202e-4f));
  p = MulAdd(p, t, Set1(-3.0375662e-4f));
  p = MulAdd(p, t, Set1(-5.00438362e-3f));
  p = MulAdd(p, t, Set1(1.79402009e-2f));
  p = MulAdd(p, t, Set1(-3.21972705e-2f));
  p = MulAdd(p, t, Set1(2.85999812e-2f));
  p = MulAdd(p, t, Set1(1.39995962e-2f));
  p = MulAdd(p, t, Set1(-9.67034698e-2f));
  p = MulAdd(p, t, Set1(4.720532e-1f));
  return Mul(corrected, Div(p, Add(bounded, Set1(1.0f))));
}

}  // namespace
}  // namespace godwit::kernels
