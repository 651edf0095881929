#include "cli/plot/axis.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace godwit::cli {

Axis::Axis(std::vector<double> ticks, double from, double to, bool log)
    : ticks_(std::move(ticks)), from_(from), to_(to), log_(log) {}

double Axis::At(double value) const {
  const double low = Scale(ticks_.front()), high = Scale(ticks_.back());
  return from_ + (Scale(value) - low) / (high - low) * (to_ - from_);
}

double Axis::Scale(double value) const { return log_ ? std::log10(value) : value; }

std::vector<double> LinearTicks(double low, double high, int most) {
  if (!(low < high)) {
    const double around = std::max(1.0, std::fabs(low) / 10);
    low -= around;
    high += around;
  }
  const double rough = (high - low) / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step), last = std::ceil(high / step);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> LogTicks(double low, double high) {
  std::vector<double> ticks;
  const double first = std::floor(std::log10(low));
  const double last = std::max(first + 1, std::ceil(std::log10(high)));
  for (double power = first; power <= last; ++power) ticks.push_back(std::pow(10, power));
  return ticks;
}

}  // namespace godwit::cli
