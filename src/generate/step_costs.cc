#include "generate/step_costs.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace godwit {
namespace {

// Weights of the newest measurement. A step that took longer may have been interrupted.
constexpr double kWeightAbove = 0.125, kWeightBelow = 0.5;
// The factor over the known time beyond which a step was interrupted.
constexpr double kInterrupted = 2;
// The power of a change with which other costs follow, as contexts grow and machines are shared. A
// change that reverses leaves them as they were.
constexpr double kFollow = 0.25;

}  // namespace

StepCosts StepCosts::AlongLines(const std::map<int64_t, double>& ms_of_rows) {
  StepCosts costs;
  int64_t before = 0;
  for (const auto& [rows, ms] : ms_of_rows) {
    assert(rows >= 1 && rows <= kMaxRows);
    const double from = costs.ms_[before];
    costs.ms_[rows] = ms;
    for (int64_t r = before + 1; before > 0 && r < rows; ++r) {
      costs.ms_[r] =
          std::lerp(from, ms, static_cast<double>(r - before) / static_cast<double>(rows - before));
    }
    before = rows;
  }
  return costs;
}

void StepCosts::Record(int64_t rows, double ms) {
  if (rows < 1 || rows > kMaxRows || !(ms > 0)) return;
  double& known = ms_[rows];
  if (double& first = first_[rows]; known == 0) {
    if (first > 0) known = std::min(first, ms);
    first = ms;
    return;
  }
  const double change = std::clamp(ms / known, 1 / kInterrupted, kInterrupted) - 1;
  const double factor = 1 + (change > 0 ? kWeightAbove : kWeightBelow) * change;
  const double follow = std::pow(factor, kFollow);
  for (double& other : ms_) other *= &other == &known ? factor : follow;
}

double StepCosts::Ms(int64_t rows) const {
  assert(rows >= 1);
  rows = std::min(rows, kMaxRows);
  while (rows > 0 && ms_[rows] == 0) --rows;
  return ms_[rows];
}

int64_t StepCosts::Largest() const {
  int64_t rows = kMaxRows;
  while (rows > 0 && ms_[rows] == 0) --rows;
  return rows;
}

}  // namespace godwit
