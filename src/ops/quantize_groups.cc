#include "ops/quantize_groups.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace godwit::ops {
namespace {

constexpr int64_t kGroup = kQuantizedGroups.group;
constexpr int64_t kFours = kGroup / 4;
constexpr float kLowest = -8, kHighest = 7;
// Trials of the integer for the weight of the largest magnitude, in steps around the lowest
// integer. If it is clipped, the other weights have a finer grid.
constexpr int kTrials = 9;
constexpr float kTrialStep = 0.25f;

// A vector of four, which every processor has: GCC alone computes one float after another.
using Floats = float __attribute__((vector_size(16)));

// The nearest integers, ties to even, of magnitudes below 2^22.
Floats Round(Floats x) {
  constexpr float kMagic = 0x1.8p23f;
  return (x + kMagic) - kMagic;
}

Floats Integers(Floats x, float inverse) {
  const Floats lowest = {kLowest, kLowest, kLowest, kLowest};
  const Floats highest = {kHighest, kHighest, kHighest, kHighest};
  Floats q = Round(x * inverse);
  q = q < highest ? q : highest;
  return q > lowest ? q : lowest;
}

struct Fit {
  float scale = 0;
  float gain = 0;  // the part of the sum of squares that the scaled integers explain
};

// The least-squares scale for the integers that `inverse` gives.
Fit FitOf(const Floats* x, float inverse) {
  Floats xq = {}, qq = {};
  for (int64_t i = 0; i < kFours; ++i) {
    const Floats q = Integers(x[i], inverse);
    xq += x[i] * q;
    qq += q * q;
  }
  const float product = (xq[0] + xq[1]) + (xq[2] + xq[3]);
  const float square = (qq[0] + qq[1]) + (qq[2] + qq[3]);
  if (square == 0) return {};
  return {.scale = product / square, .gain = product * (product / square)};
}

// The number of the largest magnitude. NaN if any number is NaN or infinite.
float Largest(const Floats* x) {
  Floats high = x[0], low = x[0], finiteness = x[0] * 0.0f;
  for (int64_t i = 1; i < kFours; ++i) {
    high = x[i] > high ? x[i] : high;
    low = x[i] < low ? x[i] : low;
    finiteness += x[i] * 0.0f;
  }
  const float most = std::max({high[0], high[1], high[2], high[3]});
  const float least = std::min({low[0], low[1], low[2], low[3]});
  const float zero = finiteness[0] + finiteness[1] + finiteness[2] + finiteness[3];
  return (-least > most ? least : most) + zero;
}

float BestScale(const Floats* x, float largest) {
  if (std::abs(largest) < 0x1p-120f) return 0;  // its inverse would overflow
  Floats relative[kFours];                      // their squares neither overflow nor vanish
  for (int64_t i = 0; i < kFours; ++i) relative[i] = x[i] * (1 / largest);
  Fit best;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Fit fit = FitOf(relative, kLowest + kTrialStep * static_cast<float>(trial - kTrials / 2));
    if (fit.gain > best.gain) best = fit;
  }
  return best.scale * largest;
}

// Loads group g of a row; the last one is padded.
void LoadGroup(const float* x, int64_t inputs, int64_t g, Floats* to) {
  const int64_t n = std::min(kGroup, inputs - g * kGroup);
  std::memset(to, 0, kGroup * sizeof(float));
  std::memcpy(to, x + g * kGroup, static_cast<size_t>(n) * sizeof(float));
}

}  // namespace

void QuantizeGroups(const float* x, kernels::GroupedRow& row, float& factor) {
  const auto inputs = static_cast<int64_t>(row.codes.size());
  const auto groups = std::ssize(row.scales);
  Floats group[kFours];
  float largest_scale = 0;
  for (int64_t g = 0; g < groups; ++g) {
    LoadGroup(x, inputs, g, group);
    const float largest = Largest(group);
    if (std::isnan(largest)) {
      factor = std::numeric_limits<float>::quiet_NaN();
      std::ranges::fill(row.scales, 0.0f);
      std::ranges::fill(row.codes, uint8_t{0});
      return;
    }
    float& scale = row.scales[g];
    scale = BestScale(group, largest);
    largest_scale = std::max(largest_scale, std::abs(scale));
  }
  factor = largest_scale > 0 ? std::ldexp(1.0f, std::ilogb(largest_scale) - 14) : 1;
  for (int64_t g = 0; g < groups; ++g) {
    LoadGroup(x, inputs, g, group);
    float& scale = row.scales[g];
    scale = ToFloat(ToF16(scale / factor));
    const float whole = scale * factor;
    const float inverse = std::abs(whole) < 0x1p-126f ? 0 : 1 / whole;
    float integers[kGroup];
    for (int64_t i = 0; i < kFours; ++i) {
      const Floats codes = Integers(group[i], inverse) - kLowest;
      std::memcpy(integers + 4 * i, &codes, sizeof(codes));
    }
    const int64_t n = std::min(kGroup, inputs - g * kGroup);
    uint8_t* codes = row.codes.data() + g * kGroup;
    for (int64_t i = 0; i < n; ++i) codes[i] = static_cast<uint8_t>(static_cast<int>(integers[i]));
  }
}

}  // namespace godwit::ops
