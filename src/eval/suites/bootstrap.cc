#include "eval/suites/bootstrap.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "eval/suites/draws.h"

namespace godwit::eval {

MeanInterval Bootstrap(std::span<const double> values, uint64_t seed) {
  constexpr int64_t kResamples = 2000, kTail = 50;  // 2.5 % of them
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (std::ranges::all_of(values, [&](double value) { return value == values.front(); })) {
    return {.mean = mean, .low = mean, .high = mean};
  }
  std::vector<double> means;
  Draws draws(seed, 0, "bootstrap");
  for (int64_t i = 0; i < kResamples; ++i) {
    double sum = 0;
    for (size_t n = 0; n < values.size(); ++n) sum += draws.OneOf(values);
    means.push_back(sum / count);
  }
  std::ranges::sort(means);
  return {.mean = mean, .low = means[kTail], .high = means[kResamples - 1 - kTail]};
}

}  // namespace godwit::eval
