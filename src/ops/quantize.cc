#include "ops/quantize.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace godwit::ops {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

RowQuantization Zeros(float scale, int64_t n, int8_t* out) {
  std::fill_n(out, (n + kernels::kQuad - 1) / kernels::kQuad * kernels::kQuad, int8_t{0});
  return {.scale = scale, .sum = 0};
}

}  // namespace

RowQuantization QuantizeRow(const kernels::KernelTable& kernels, const float* x, int64_t n,
                            int8_t* out) noexcept {
  return QuantizeRowWithLargest(kernels, x, kernels.largest_magnitude(x, n), n, out);
}

RowQuantization QuantizeRowWithLargest(const kernels::KernelTable& kernels, const float* x,
                                       float largest, int64_t n, int8_t* out) noexcept {
  if (std::isnan(largest)) return Zeros(kNan, n, out);
  if (largest < 0x1p-120f) return Zeros(0.0f, n, out);
  const int32_t sum = kernels.quantize(x, 127.0f / largest, n, out).sum;
  return {.scale = largest / 127.0f, .sum = sum};
}

RowQuantization QuantizeRowWithScale(const kernels::KernelTable& kernels, const float* x,
                                     float scale, int64_t n, int8_t* out) noexcept {
  const kernels::QuantizedSum result = kernels.quantize(x, 1.0f / scale, n, out);
  if (!result.finite) return Zeros(kNan, n, out);
  return {.scale = scale, .sum = result.sum};
}

void SubtractRounded(const int8_t* integers, float scale, int64_t n, float* x) noexcept {
  for (int64_t i = 0; i < n; ++i) x[i] -= scale * static_cast<float>(integers[i]);
}

}  // namespace godwit::ops
