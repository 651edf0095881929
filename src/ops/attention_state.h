// The attention state of a query that has seen some of its keys, and merging of states.
//
// Over a set of keys with scores s, in units of ln(2) (so that exp is 2^), and values v it holds
//
//   m, an integer about max s,   l = sum 2^(s - m),   a = sum 2^(s - m) v,
//
// as kernels::kStateHeader floats with m and, in lanes, l (kernel_table.h), and then the value_dim
// of a, padded. Without keys: m = -infinity, l = 0, a = 0, which changes nothing. Two states over
// different keys merge into the one over both,
//
//   m = max(m1, m2),   l = l1 2^(m1 - m) + l2 2^(m2 - m),   a as l,
//
// which is commutative and, up to rounding, associative. The factors are powers of two, so only the
// sum is rounded. Tiles, stretches, cores and hosts may therefore each add up their own keys.
// Merging in one order gives the same bits. In the end comes a / l. A sink logit is a key of that
// score without a value. It enters here, once for a query, however its keys were added up.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace godwit::ops {

// Floats from one state to the next.
constexpr int64_t StateStride(int64_t value_dim) {
  return kernels::kStateHeader + kernels::PadToLanes(value_dim);
}

// Sets states [rows, StateStride(value_dim)] to those of no keys.
void ClearStates(int64_t value_dim, int64_t rows, float* states);

// Merges states: into [rows, StateStride(value_dim)] becomes the states over the keys of both.
void MergeStates(const kernels::KernelTable& kernels, int64_t value_dim, int64_t rows,
                 const float* from, float* into);

// A state on its way to another host: m, l and a, side by side.
constexpr int64_t PackedState(int64_t value_dim) { return value_dim + 2; }

// Packs and unpacks states. packed [rows, PackedState(value_dim)]; states [rows,
// StateStride(value_dim)]. An unpacked state has the same l in one lane.
void PackStates(int64_t value_dim, int64_t rows, const float* states, float* packed);
void UnpackStates(int64_t value_dim, int64_t rows, const float* packed, float* states);

// Computes out [value_dim], the query's result; zeros if it saw nothing. sink_logit: null for none.
void FinishState(const kernels::KernelTable& kernels, int64_t value_dim, const float* sink_logit,
                 float* state, float* out);

}  // namespace godwit::ops
