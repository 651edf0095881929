// A short causal convolution of each column on its own, between two gates
// (ops/short_convolution.h). Its definition, a plain loop, is its only form: a model spends a
// thousandth of its time here.
#pragma once

#include <cstdint>

namespace godwit::kernels {

// Computes one output of columns [first, last):
//   out[c] = gate[c] * (sum over j of taps[j][c] * rows[j][c] + bias[c])
// in one chain, j ascending. Every operation rounds on its own, so all instruction sets give the
// same bits. Pointers point to column 0. Nothing overlaps.
struct ShortConvolutionArgs {
  const float* taps;  // [count, width], the oldest row's first
  int64_t width;
  const float* bias;         // [width]; null: none
  const float* const* rows;  // [count] rows, the last one of the output's own position
  int64_t count;
  const float* gate;  // null: none
  int64_t first;
  int64_t last;
  float* out;
};
void ShortConvolution(const ShortConvolutionArgs& args) noexcept;

}  // namespace godwit::kernels
