#include "console/terminal/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace godwit::console {

std::string FormatDuration(double seconds) {
  constexpr double kLongest = 1000 * 3600;  // also keeps infinity out of the conversion
  const auto whole = static_cast<int64_t>(std::clamp(std::ceil(seconds), 0.0, kLongest));
  const int64_t minutes = whole / 60;
  if (minutes < 60) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", minutes / 60, minutes % 60, whole % 60);
}

std::string FormatRate(double per_second) {
  if (per_second < 9.995) return fmt::format("{:.2f}", per_second);
  if (per_second < 99.95) return fmt::format("{:.1f}", per_second);
  return fmt::format("{:.0f}", per_second);
}

std::string FormatCount(int64_t count) {
  constexpr const char* kUnits[] = {"", " K", " M", " B", " T"};
  auto value = static_cast<double>(count);
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return unit == 0 ? fmt::format("{}", count) : FormatRate(value) + kUnits[unit];
}

std::string Plural(int64_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace godwit::console
