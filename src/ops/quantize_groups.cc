#include "ops/quantize_groups.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace godwit::ops {
namespace {

constexpr int64_t kGroup = kQuantizedGroups.group;
constexpr float kLowest = -8, kHighest = 7;
// What the weight of the largest magnitude becomes at first, in steps around the lowest integer:
// where it is clipped the others are finer.
constexpr int kTrials = 9;
constexpr float kTrialStep = 0.25f;

// To the nearest integer, ties to even, of magnitudes below 2^22; unlike std::nearbyint it compiles
// to vector instructions.
float Round(float x) {
  constexpr float kMagic = 0x1.8p23f;
  return (x + kMagic) - kMagic;
}

float Integer(float x, float inverse) {
  return std::max(kLowest, std::min(kHighest, Round(x * inverse)));
}

struct Fit {
  float scale = 0;
  float gain = 0;  // of the sum of squares, what the scaled integers explain
};

// The scale of least squares for the integers that `inverse` leads to.
Fit FitOf(const float* x, float inverse) {
  float lanes_xq[8] = {}, lanes_qq[8] = {};
  for (int64_t i = 0; i < kGroup; i += 8) {
    for (int64_t lane = 0; lane < 8; ++lane) {
      const float q = Integer(x[i + lane], inverse);
      lanes_xq[lane] += x[i + lane] * q;
      lanes_qq[lane] += q * q;
    }
  }
  float xq = 0, qq = 0;
  for (int64_t lane = 0; lane < 8; ++lane) {
    xq += lanes_xq[lane];
    qq += lanes_qq[lane];
  }
  return qq > 0 ? Fit{.scale = xq / qq, .gain = xq * (xq / qq)} : Fit{};
}

// x [kGroup]
float BestScale(const float* x) {
  const float* largest =
      std::max_element(x, x + kGroup, [](float a, float b) { return std::abs(a) < std::abs(b); });
  if (std::abs(*largest) < 0x1p-120f) return 0;  // whose inverse overflows
  float relative[kGroup];                        // squares of which neither overflow nor vanish
  const float inverse = 1 / *largest;
  for (int64_t i = 0; i < kGroup; ++i) relative[i] = x[i] * inverse;
  Fit best;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Fit fit = FitOf(relative, kLowest + kTrialStep * static_cast<float>(trial - kTrials / 2));
    if (fit.gain > best.gain) best = fit;
  }
  return best.scale * *largest;
}

}  // namespace

void QuantizeGroups(const float* x, kernels::GroupedRow& row, float& factor) {
  const auto inputs = static_cast<int64_t>(row.codes.size());
  // A row is of floats that may be padded to whole groups here only.
  const auto group_at = [&](int64_t g, float* to) {
    const int64_t n = std::min(kGroup, inputs - g * kGroup);
    std::fill(std::copy_n(x + g * kGroup, n, to), to + kGroup, 0.0f);
  };
  float largest = 0;
  bool finite = true;
  for (size_t g = 0; g < row.scales.size(); ++g) {
    float group[kGroup];
    group_at(static_cast<int64_t>(g), group);
    finite = finite && std::all_of(group, group + kGroup, [](float v) { return std::isfinite(v); });
    row.scales[g] = finite ? BestScale(group) : 0;
    largest = std::max(largest, std::abs(row.scales[g]));
  }
  factor = finite ? 1 : std::numeric_limits<float>::quiet_NaN();
  if (finite && largest > 0) factor = std::ldexp(1.0f, std::ilogb(largest) - 14);
  for (size_t g = 0; g < row.scales.size(); ++g) {
    float group[kGroup];
    group_at(static_cast<int64_t>(g), group);
    float& scale = row.scales[g];
    scale = finite ? ToFloat(ToF16(scale / factor)) : 0;
    const float whole = scale * factor;
    const float inverse = std::abs(whole) < 0x1p-126f ? 0 : 1 / whole;
    const int64_t first = static_cast<int64_t>(g) * kGroup;
    for (int64_t i = 0; i < std::min(kGroup, inputs - first); ++i) {
      const float q = finite ? Integer(group[i], inverse) : 0;
      row.codes[static_cast<size_t>(first + i)] = static_cast<uint8_t>(q - kLowest);
    }
  }
}

}  // namespace godwit::ops
