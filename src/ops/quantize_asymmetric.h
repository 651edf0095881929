// Rows of floats as int8 with a scale and a zero point: x[i] is about scale * (out[i] - zero
// point). All 256 integers are used, from the row's smallest number to its largest.
//
// Most models have symmetric rows (ops/quantize.h), so this is one loop for every instruction set,
// which gives the same bits by that.
#pragma once

#include <cstdint>

#include "ops/quantize.h"

namespace godwit::ops {

// The range of a row: min <= 0 <= max; both NaN where an element is not finite.
struct ValueRange {
  float min = 0;
  float max = 0;
};
ValueRange RangeOf(const float* x, int64_t n) noexcept;

// The range of both.
ValueRange Join(ValueRange a, ValueRange b) noexcept;

struct AsymmetricScale {
  float scale;
  int32_t zero_point;  // in [-128, 127], as 0 lies in every range: it stays exactly 0
};
// The scale as compressed-tensors has it: scale = (max - min) / 255, zero point = -128 - min /
// scale, rounded. vLLM does not bring 0 into the range, which differs for rows of one sign.
AsymmetricScale AsymmetricScaleOf(ValueRange range) noexcept;

// out: [n], padded with zeros to a multiple of kernels::kQuad. The scale of the result is NaN if x
// is not finite.
RowQuantization QuantizeRowAsymmetric(const float* x, AsymmetricScale scale, int64_t n,
                                      int8_t* out) noexcept;

}  // namespace godwit::ops
