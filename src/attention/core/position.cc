#include "attention/core/position.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

namespace godwit {
namespace {

double DynamicTheta(const RotarySpec& spec, int64_t context) {
  const RotaryScaling& scaling = spec.scaling;
  const double ratio =
      std::max(1.0, static_cast<double>(context) / static_cast<double>(scaling.original_context));
  const auto dim = static_cast<double>(spec.rotary_dim);
  return spec.theta * std::pow(scaling.factor * ratio - (scaling.factor - 1), dim / (dim - 2));
}

double Llama3Frequency(const RotaryScaling& scaling, double frequency) {
  const double turns =
      static_cast<double>(scaling.original_context) * frequency / (2 * std::numbers::pi);
  const double ramp = scaling.high_freq_factor - scaling.low_freq_factor;
  const double above = turns - scaling.low_freq_factor;
  const double keep = ramp > 0 ? std::clamp(above / ramp, 0.0, 1.0) : above < 0 ? 0 : 1;
  return frequency * (keep + (1 - keep) / scaling.factor);
}

// The dimension (as a real number) that turns `turns` times over the original context.
double YarnDimension(const RotarySpec& spec, double turns) {
  return static_cast<double>(spec.rotary_dim) *
         std::log(static_cast<double>(spec.scaling.original_context) /
                  (turns * 2 * std::numbers::pi)) /
         (2 * std::log(spec.theta));
}

double YarnFrequency(const RotarySpec& spec, double frequency, int64_t pair) {
  const RotaryScaling& scaling = spec.scaling;
  double low = YarnDimension(spec, scaling.beta_fast);
  double high = YarnDimension(spec, scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(spec.rotary_dim - 1));
  if (low == high) high += 0.001;
  const double divide = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  return frequency * (divide / scaling.factor + (1 - divide));
}

double LongRopeFrequency(const RotaryScaling& scaling, double frequency, int64_t pair,
                         int64_t context) {
  const bool stretched = context > scaling.original_context;
  return frequency / (stretched ? scaling.long_factors : scaling.short_factors)[pair];
}

}  // namespace

float QueryTemperature::At(int64_t position) const {
  const auto periods = static_cast<double>((position + first) / tokens);
  return static_cast<float>(1 + growth * std::log1p(periods));
}

bool DependsOnContext(const RotarySpec& spec) {
  return spec.scaling.kind == RotaryScaling::Kind::kDynamic ||
         spec.scaling.kind == RotaryScaling::Kind::kLongRope;
}

RotaryEncoding::RotaryEncoding(const RotarySpec& spec, int64_t context)
    : inverse_frequencies_(spec.rotary_dim / 2), magnitude_(1), temperature_(spec.temperature) {
  using Kind = RotaryScaling::Kind;
  const RotaryScaling& scaling = spec.scaling;
  const double theta = scaling.kind == Kind::kDynamic ? DynamicTheta(spec, context) : spec.theta;
  for (int64_t pair = 0; pair < spec.rotary_dim / 2; ++pair) {
    double frequency =
        std::pow(theta, -2.0 * static_cast<double>(pair) / static_cast<double>(spec.rotary_dim));
    if (scaling.kind == Kind::kLinear) frequency /= scaling.factor;
    if (scaling.kind == Kind::kLlama3) frequency = Llama3Frequency(scaling, frequency);
    if (scaling.kind == Kind::kYarn) frequency = YarnFrequency(spec, frequency, pair);
    if (scaling.kind == Kind::kLongRope) {
      frequency = LongRopeFrequency(scaling, frequency, pair, context);
    }
    if (spec.turning_pairs && pair >= *spec.turning_pairs) frequency = 0;
    inverse_frequencies_[pair] = frequency;
  }
  if (scaling.kind == Kind::kYarn || scaling.kind == Kind::kLongRope) {
    magnitude_ = scaling.attention_factor;
  }
}

void RotaryEncoding::Fill(int64_t first, MatrixView<float> cos, MatrixView<float> sin) const {
  assert(cos.cols == rotary_dim() / 2 && sin.cols == cos.cols && sin.rows == cos.rows);
  for (int64_t row = 0; row < cos.rows; ++row) {
    const auto position = static_cast<double>(first + row);
    for (int64_t pair = 0; pair < cos.cols; ++pair) {
      const double angle = position * inverse_frequencies_[pair];
      cos.Row(row)[pair] = static_cast<float>(std::cos(angle) * magnitude_);
      sin.Row(row)[pair] = static_cast<float>(std::sin(angle) * magnitude_);
    }
  }
}

void RotaryEncoding::FillMeans(int64_t first, int64_t tokens, MatrixView<float> cos,
                               MatrixView<float> sin) const {
  assert(cos.cols == rotary_dim() / 2 && sin.cols == cos.cols && sin.rows == cos.rows);
  const auto n = static_cast<double>(tokens);
  for (int64_t row = 0; row < cos.rows; ++row) {
    const double middle = static_cast<double>(first + row * tokens) + (n - 1) / 2;
    for (int64_t pair = 0; pair < cos.cols; ++pair) {
      const double turn = inverse_frequencies_[pair];
      // The mean of e^(i turn p) over n positions: its value at their middle, times the Dirichlet
      // kernel.
      const double half = std::sin(turn / 2);
      const double length = half == 0 ? 1 : std::sin(n * turn / 2) / (n * half);
      cos.Row(row)[pair] = static_cast<float>(std::cos(turn * middle) * length * magnitude_);
      sin.Row(row)[pair] = static_cast<float>(std::sin(turn * middle) * length * magnitude_);
    }
  }
}

}  // namespace godwit
