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

// Positive levels of codes, the steps from one to the next, and the borders between them.
constexpr int kPositiveLevels = 8;
constexpr float Level(int i) { return kernels::kNibbleLevels[kPositiveLevels + i]; }
constexpr float Step(int i) { return Level(i) - Level(i - 1); }
constexpr float Midpoint(int i) { return (Level(i) + Level(i - 1)) / 2; }

// The squared error of numbers as levels of that scale. Each lane has its own sum, which compilers
// turn into vectors.
float ErrorOfScale(const float* x, int64_t n, float scale) {
  constexpr int64_t kLanes = 8;
  const float factor = 1 / scale;
  float sums[kLanes] = {};
  const auto add = [&](float number, float& sum) {
    const float magnitude = std::fabs(number) * factor;
    float level = Level(0);
    for (int i = 1; i < kPositiveLevels; ++i) level += magnitude > Midpoint(i) ? Step(i) : 0.0f;
    sum += (magnitude - level) * (magnitude - level);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) add(x[i + lane], sums[lane]);
  }
  for (int64_t lane = 0; i < n; ++i, ++lane) add(x[i], sums[lane]);
  float sum = 0;
  for (const float of_lane : sums) sum += of_lane;
  return sum * scale * scale;
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

float QuantizeToNibbles(const kernels::KernelTable& kernels, const float* x, int64_t n,
                        uint8_t* codes) noexcept {
  constexpr float kDeviationLevels = 127 / 2.733f;  // kernels::kNibbleLevels
  constexpr float kOfDeviation[] = {0.8f, 0.9f, 1.0f, 1.1f};
  std::fill_n(codes, n, uint8_t{kPositiveLevels});
  const float largest = kernels.largest_magnitude(x, n);
  if (std::isnan(largest)) return kNan;
  if (largest < 0x1p-120f) return 0;
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += double{x[i]} * x[i];
  const double deviation = std::sqrt(squares / static_cast<double>(n));
  const auto exact = static_cast<float>(deviation) / kDeviationLevels;
  float best = 0, least = std::numeric_limits<float>::infinity();
  for (const float of_deviation : kOfDeviation) {
    const float scale = of_deviation * exact, error = ErrorOfScale(x, n, scale);
    if (best == 0 || error < least) {
      best = scale;
      least = error;
    }
  }
  const float factor = 1 / best;
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(x[i]) * factor;
    int code = 0;
    for (int midpoint = 1; midpoint < kPositiveLevels; ++midpoint)
      code += magnitude > Midpoint(midpoint);
    codes[i] = static_cast<uint8_t>(x[i] < 0 ? kPositiveLevels - 1 - code : kPositiveLevels + code);
  }
  return best;
}

void SubtractRounded(const int8_t* integers, float scale, int64_t n, float* x) noexcept {
  for (int64_t i = 0; i < n; ++i) x[i] -= scale * static_cast<float>(integers[i]);
}

}  // namespace godwit::ops
