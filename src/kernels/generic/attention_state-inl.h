// The algebra of attention states, over Vec. Include after one of vec/*.h.
#pragma once

#include "kernels/generic/map-inl.h"
#include "kernels/generic/math-inl.h"

namespace godwit::kernels {
namespace {

GODWIT_INLINE float TotalOfLanes(const float* state) {
  Vec total = Load(state + kStateLanes);
  for (int64_t i = kLanes; i < kLaneFloats; i += kLanes) {
    total = Add(total, Load(state + kStateLanes + i));
  }
  return ReduceAdd(total);
}

void MergeState(const float* from, int64_t value_dim, float* into) noexcept {
  if (TotalOfLanes(from) == 0.0f) return;
  const int64_t lanes = (value_dim + kLaneFloats - 1) / kLaneFloats;
  const int64_t sums = kStateHeader - kStateLanes + lanes * kLaneFloats;
  const float* theirs = from + kStateLanes;
  float* ours = into + kStateLanes;
  if (TotalOfLanes(into) == 0.0f) {
    into[0] = from[0];
    Map(theirs, sums, ours, [](Vec v) { return v; });
    return;
  }
  const float maximum = into[0] > from[0] ? into[0] : from[0];
  const Vec our_factor = Exp2(Set1(into[0] - maximum));
  const Vec their_factor = Exp2(Set1(from[0] - maximum));
  into[0] = maximum;
  Map2(ours, theirs, sums, ours,
       [&](Vec a, Vec b) { return MulAdd(b, their_factor, Mul(a, our_factor)); });
}

void FinishState(const float* state, int64_t value_dim, float* out) noexcept {
  const float total = TotalOfLanes(state);
  const float* values = state + kStateHeader;
  if (total == 0.0f) {
    Map(values, value_dim, out, [](Vec) { return Zero(); });
  } else {
    Map(values, value_dim, out, [&](Vec v) { return Div(v, Set1(total)); });
  }
}

}  // namespace
}  // namespace godwit::kernels
