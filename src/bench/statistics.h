// A handful of measurements as one number and its spread.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

namespace godwit::bench {

// The median; 0 for no values.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// The standard deviation of a sample: n - 1 in the denominator; 0 for fewer than two values.
inline double StandardDeviation(const std::vector<double>& values) {
  if (values.size() < 2) return 0;
  const auto n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / n;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / (n - 1));
}

}  // namespace godwit::bench
