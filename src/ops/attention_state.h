// The state of a query that has seen some of its keys, and how states come together.
//
// Over a set of keys with scores s, in units of ln(2) (so that exp is 2^), and values v it holds
//
//   m, an integer about max s,   l = sum 2^(s - m),   a = sum 2^(s - m) v,
//
// as kernels::kStateHeader floats with m and, in lanes, l (kernel_table.h), and then the value_dim
// of a, padded. Of no key: m = -infinity, l = 0, a = 0, which changes nothing. Two states over
// different keys merge into the one over both,
//
//   m = max(m1, m2),   l = l1 2^(m1 - m) + l2 2^(m2 - m),   a likewise,
//
// which is commutative and, up to rounding, associative; the factors are powers of two, so nothing
// but the sum is rounded. So tiles, stretches, cores and hosts may each add up their own keys;
// whoever wants the same bits merges in one order. In the end comes a / l. A sink logit is a key of
// that score without a value; it enters here, once for a query, whoever added up the keys.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace godwit::ops {

// Floats from one state to the next.
constexpr int64_t StateStride(int64_t value_dim) {
  return kernels::kStateHeader + kernels::PadToLanes(value_dim);
}

// states [rows, StateStride(value_dim)]: of no keys.
void ClearStates(int64_t value_dim, int64_t rows, float* states);

// into [rows, StateStride(value_dim)]: the states over the keys of both.
void MergeStates(const kernels::KernelTable& kernels, int64_t value_dim, int64_t rows,
                 const float* from, float* into);

// A state on its way to another host: m, l and a, side by side.
constexpr int64_t PackedState(int64_t value_dim) { return value_dim + 2; }

// packed [rows, PackedState(value_dim)]; states [rows, StateStride(value_dim)]. What is unpacked
// has the same l in one lane.
void PackStates(int64_t value_dim, int64_t rows, const float* states, float* packed);
void UnpackStates(int64_t value_dim, int64_t rows, const float* packed, float* states);

// out [value_dim]: what the query gets, zeros if it saw nothing. sink_logit: null for none.
void FinishState(const kernels::KernelTable& kernels, int64_t value_dim, const float* sink_logit,
                 float* state, float* out);

}  // namespace godwit::ops
