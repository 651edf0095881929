// Rows of floats as int8 with a scale each: x[i] is about scale * out[i].
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"

namespace godwit::ops {

struct RowQuantization {
  float scale;  // NaN if x is not finite: results computed from the row are then NaN too
  int32_t sum;  // of the integers
};

// Quantizes a row with a scale of its own, the largest magnitude / 127: relative to that, an
// element is off by 1/254 at most. A row of zeros gives zeros with scale 0. So does one whose
// elements are all below 2^-120, where 127 / magnitude would overflow. out: [n], padded with zeros
// to a multiple of kernels::kQuad. Every instruction set gives the same bits.
RowQuantization QuantizeRow(const kernels::KernelTable& kernels, const float* x, int64_t n,
                            int8_t* out) noexcept;

// Quantizes a row for a given largest magnitude; elements beyond it become 127 or -127.
RowQuantization QuantizeRowWithLargest(const kernels::KernelTable& kernels, const float* x,
                                       float largest, int64_t n, int8_t* out) noexcept;

// Quantizes a row with the given scale > 0; elements beyond 127 times it become that.
RowQuantization QuantizeRowWithScale(const kernels::KernelTable& kernels, const float* x,
                                     float scale, int64_t n, int8_t* out) noexcept;

// Quantizes a row to codes of 4 bits [n], which stand for kernels::kNibbleLevels, as for normal
// numbers. The scale is the one of least error among a few around their deviation. n <=
// kernels::kMaxHeadDim. NaN, zeros and bits: as QuantizeRow.
float QuantizeToNibbles(const kernels::KernelTable& kernels, const float* x, int64_t n,
                        uint8_t* codes) noexcept;

// Subtracts scale * integers[i] from x [n]: the rest that a row's quantization left, for a second
// one.
void SubtractRounded(const int8_t* integers, float scale, int64_t n, float* x) noexcept;

}  // namespace godwit::ops
