#include "generate/step_costs.h"

#include <algorithm>
#include <cassert>

namespace godwit {
namespace {

// Of the newest measurement.
constexpr double kWeight = 0.125;
// A step that took longer than so many times what is known was interrupted.
constexpr double kInterrupted = 2;
// How far the others follow: contexts grow, and machines are shared.
constexpr double kDrift = 1.0 / 32;

}  // namespace

void StepCosts::Record(int64_t rows, double ms) {
  if (rows < 1 || rows > kMostRows || !(ms > 0)) return;
  double& known = ms_[static_cast<size_t>(rows)];
  if (double& first = first_[static_cast<size_t>(rows)]; known == 0) {
    if (first > 0) known = std::min(first, ms);
    first = ms;
    return;
  }
  const double change = std::clamp(ms / known, 1 / kInterrupted, kInterrupted) - 1;
  for (double& other : ms_) {
    if (&other != &known) other *= 1 + kDrift * change;
  }
  known *= 1 + kWeight * change;
}

double StepCosts::Ms(int64_t rows) const {
  assert(rows >= 1);
  int64_t below = 0;
  for (int64_t r = 1; r <= kMostRows; ++r) {
    const double ms = ms_[static_cast<size_t>(r)];
    if (ms == 0) continue;
    if (r >= rows) {
      if (r == rows) return ms;
      if (below == 0) return 0;
      const double before = ms_[static_cast<size_t>(below)];
      return before +
             (ms - before) * static_cast<double>(rows - below) / static_cast<double>(r - below);
    }
    below = r;
  }
  return ms_[static_cast<size_t>(below)];
}

int64_t StepCosts::Largest() const {
  int64_t rows = kMostRows;
  while (rows > 0 && ms_[static_cast<size_t>(rows)] == 0) --rows;
  return rows;
}

}  // namespace godwit
