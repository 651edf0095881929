// Multiplying and reading as fast as Vec can. Include after one of vec/*.h.
//
// Chains of additions hide the latency of a multiply-add on every known processor. Twelve do on x86
// (4 or 5 cycles, two a cycle), sixteen on Arm (4 cycles, four a cycle). Twelve leave space for the
// operands in 16 registers. Chains are named, since GCC 12 keeps arrays of vectors in memory.
#pragma once

#include "kernels/peak.h"

namespace godwit::kernels {
namespace {

constexpr int64_t kPeakChains = kLanes == 4 ? 16 : 12;

// Where the compiler knows the value, it might compute it: here it does not.
template <class V>
GODWIT_INLINE void Forget(V& value) {
  __asm__ volatile("" : "+" GODWIT_VECTOR_REGISTER(value));
}

// V: a register; accumulate(sum) -> sum. Returns the instructions that were executed.
template <class V, class Accumulate>
GODWIT_INLINE int64_t RunChains(V zero, int64_t rounds, Accumulate accumulate) {
  V s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero;
  V s6 = zero, s7 = zero, s8 = zero, s9 = zero, s10 = zero, s11 = zero;
  [[maybe_unused]] V s12 = zero, s13 = zero, s14 = zero, s15 = zero;
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = accumulate(s0), s1 = accumulate(s1), s2 = accumulate(s2);
    s3 = accumulate(s3), s4 = accumulate(s4), s5 = accumulate(s5);
    s6 = accumulate(s6), s7 = accumulate(s7), s8 = accumulate(s8);
    s9 = accumulate(s9), s10 = accumulate(s10), s11 = accumulate(s11);
    if constexpr (kPeakChains == 16) {
      s12 = accumulate(s12), s13 = accumulate(s13), s14 = accumulate(s14), s15 = accumulate(s15);
      Forget(s12), Forget(s13), Forget(s14), Forget(s15);
    }
    // Equal chains would otherwise be one.
    Forget(s0), Forget(s1), Forget(s2), Forget(s3), Forget(s4), Forget(s5);
    Forget(s6), Forget(s7), Forget(s8), Forget(s9), Forget(s10), Forget(s11);
  }
  return rounds * kPeakChains;
}

int64_t PeakF32(int64_t rounds) noexcept {
  Vec a = Set1(0.5f), b = Set1(0.25f);
  Forget(a), Forget(b);
  return RunChains(Zero(), rounds, [&](Vec sum) { return MulAdd(a, b, sum); }) * kLanes;
}

float ReadMemory(const float* p, int64_t bytes) noexcept {
  const float* end = p + bytes / int64_t{sizeof(float)};
  Vec s0 = Zero(), s1 = Zero(), s2 = Zero(), s3 = Zero();
  for (; p < end; p += 8 * kLanes) {
    s0 = Add(s0, Add(Load(p), Load(p + kLanes)));
    s1 = Add(s1, Add(Load(p + 2 * kLanes), Load(p + 3 * kLanes)));
    s2 = Add(s2, Add(Load(p + 4 * kLanes), Load(p + 5 * kLanes)));
    s3 = Add(s3, Add(Load(p + 6 * kLanes), Load(p + 7 * kLanes)));
  }
  return ReduceAdd(Add(Add(s0, s1), Add(s2, s3)));
}

}  // namespace
}  // namespace godwit::kernels
