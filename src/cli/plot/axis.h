// One axis of a chart: round numbers along it, and where a value lies.
#pragma once

#include <vector>

namespace godwit::cli {

class Axis {
 public:
  // From the first tick at the pixel `from` to the last at `to`. log: all ticks are positive.
  Axis(std::vector<double> ticks, double from, double to, bool log);

  const std::vector<double>& ticks() const { return ticks_; }
  double At(double value) const;

 private:
  double Scale(double value) const;

  std::vector<double> ticks_;
  double from_, to_;
  bool log_;
};

// Round numbers that cover [low, high] in at most `most` + 1 steps of 1, 2 or 5 times a power of
// ten.
std::vector<double> LinearTicks(double low, double high, int most);
// Powers of ten from the one at or below `low` to the one at or above `high`, both positive.
std::vector<double> LogTicks(double low, double high);

}  // namespace godwit::cli
