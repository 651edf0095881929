// The state of a query that has seen some of its keys, and how states come together.
//
// Over a set of keys with scores s and values v it holds
//
//   m = max s,   l = sum exp(s - m),   a = sum exp(s - m) v,
//
// as [m, l, unused ..., a ...]: kernels::kStateHeader floats, then head_dim of them, padded. Of no
// key: m = -infinity, l = 0, a = 0, which changes nothing. Two states over different keys merge
// into the one over both,
//
//   m = max(m1, m2),   l = l1 exp(m1 - m) + l2 exp(m2 - m),   a likewise,
//
// which is commutative and, up to rounding, associative. So tiles, stretches, cores and hosts may
// each add up their own keys; whoever wants the same bits merges in one order. In the end comes
// a / l. A sink logit is a key of that score without a value; it enters here, once for a query,
// whoever added up the keys.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace godwit::ops {

inline constexpr int64_t kMaxHeadDim = 1024;

// Floats from one state to the next.
constexpr int64_t StateStride(int64_t head_dim) {
  return kernels::kStateHeader + kernels::PadToLanes(head_dim);
}

// states [rows, StateStride(head_dim)]: of no keys.
void ClearStates(int64_t head_dim, int64_t rows, float* states);

// into [rows, StateStride(head_dim)]: the states over the keys of both.
void MergeStates(const kernels::KernelTable& kernels, int64_t head_dim, int64_t rows,
                 const float* from, float* into);

// out [head_dim]: what the query gets, zeros if it saw nothing. sink_logit: null for none. head_dim
// <= kMaxHeadDim.
void FinishState(const kernels::KernelTable& kernels, int64_t head_dim, const float* sink_logit,
                 float* state, float* out);

}  // namespace godwit::ops
