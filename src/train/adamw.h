// AdamW (Loshchilov and Hutter, arXiv 1711.05101), with bias correction.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/exec.h"

namespace godwit::train {

struct AdamW {
  explicit AdamW(int64_t size) : mean(static_cast<size_t>(size)), square(mean.size()) {}

  // One step down the gradient. decays(i): whether weight decay acts on the i-th value.
  template <typename Decays>
  void Step(const Exec& exec, std::span<float> values, std::span<const float> gradient, double rate,
            const Decays& decays);

  static constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f, kDecay = 0.1f;

  std::vector<float> mean, square;  // means of gradients and of their squares
  int64_t steps = 0;
};

template <typename Decays>
void AdamW::Step(const Exec& exec, std::span<float> values, std::span<const float> gradient,
                 double rate, const Decays& decays) {
  ++steps;
  const auto n = static_cast<double>(steps);
  const auto mean_scale = static_cast<float>(1 / (1 - std::pow(static_cast<double>(kBeta1), n)));
  const auto square_scale = static_cast<float>(1 / (1 - std::pow(static_cast<double>(kBeta2), n)));
  const auto lr = static_cast<float>(rate);
  constexpr size_t kTask = 1 << 15;
  const size_t tasks = (values.size() + kTask - 1) / kTask;
  exec.Parallel(static_cast<int64_t>(tasks), [&](int64_t task) {
    const size_t begin = static_cast<size_t>(task) * kTask;
    const size_t end = std::min(values.size(), begin + kTask);
    for (size_t i = begin; i < end; ++i) {
      const float g = gradient[i];
      mean[i] += (1 - kBeta1) * (g - mean[i]);
      square[i] += (1 - kBeta2) * (g * g - square[i]);
      const float decay = decays(i) ? kDecay * values[i] : 0;
      values[i] -=
          lr * (mean[i] * mean_scale / (std::sqrt(square[i] * square_scale) + kEpsilon) + decay);
    }
  });
}

}  // namespace godwit::train
