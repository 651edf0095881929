#include "ops/quantize_asymmetric.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace godwit::ops {
namespace {

// The nearest integer, ties to even, for |x| < 2^22: a sum with the shift keeps no fraction.
float Nearest(float x) {
  constexpr float kShift = 0x1.8p23f;
  return (x + kShift) - kShift;
}

}  // namespace

ValueRange RangeOf(const float* x, int64_t n) noexcept {
  ValueRange range;
  float finiteness = 0;  // 0 times infinity or NaN is NaN
  for (int64_t i = 0; i < n; ++i) {
    range.min = std::min(range.min, x[i]);
    range.max = std::max(range.max, x[i]);
    finiteness += x[i] * 0.0f;
  }
  return {range.min + finiteness, range.max + finiteness};
}

ValueRange Join(ValueRange a, ValueRange b) noexcept {
  return {std::min(a.min, b.min), std::max(a.max, b.max)};
}

AsymmetricScale AsymmetricScaleOf(ValueRange range) noexcept {
  // The difference may overflow where its parts do not. Below, 1 / scale must not.
  const float scale = std::max(0x1p-120f, range.max / 255.0f - range.min / 255.0f);
  const float zero_point = std::min(127.0f, std::max(-128.0f, -128.0f - range.min / scale));
  return {scale, static_cast<int32_t>(Nearest(zero_point))};
}

RowQuantization QuantizeRowAsymmetric(const float* x, AsymmetricScale scale, int64_t n,
                                      int8_t* out) noexcept {
  const float factor = 1.0f / scale.scale;
  const auto zero_point = static_cast<float>(scale.zero_point);
  int32_t sum = 0;
  float finiteness = 0;
  for (int64_t i = 0; i < n; ++i) {
    finiteness += x[i] * 0.0f;
    // x is bounded before it is rounded and shifted, both of which are exact then. NaN becomes a
    // bound.
    const float bounded =
        std::min(127.0f - zero_point, std::max(-128.0f - zero_point, x[i] * factor));
    out[i] = static_cast<int8_t>(Nearest(bounded) + zero_point);
    sum += out[i];
  }
  std::fill(out + n, out + (n + kernels::kQuad - 1) / kernels::kQuad * kernels::kQuad, int8_t{0});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  return {.scale = std::isnan(finiteness) ? nan : scale.scale, .sum = sum};
}

}  // namespace godwit::ops
