// The decaying sum of a tile's rows, the mixer for tests (ops/decaying_sum.h). Its definition, a
// plain loop, is its only form: no model has it.
#pragma once

#include <cstdint>

namespace godwit::kernels {

// Computes one output of columns [first, last), each on its own:
//   out[c] = powers[count] * begin[c] + sum over j of powers[count - 1 - j] * rows[j][c]
// in one chain from the term of `begin`, j ascending. Every operation rounds on its own, so all
// instruction sets give the same bits. Pointers point to column 0. Nothing overlaps.
struct DecayingSumArgs {
  const float* powers;       // [count + 1] of the decay
  const float* begin;        // the sum at the tile's beginning
  const float* const* rows;  // [count] rows, from the tile's beginning on
  int64_t count;
  int64_t first;
  int64_t last;
  float* out;
};
void DecayingSum(const DecayingSumArgs& args) noexcept;

}  // namespace godwit::kernels
