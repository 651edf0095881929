#include "base/nearest.h"

#include <algorithm>
#include <vector>

#include "base/ascii.h"

namespace godwit {
namespace {

size_t EditDistance(std::string_view a, std::string_view b) {
  // Rows of the usual table; swaps look two rows back.
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> Nearest(std::string_view name, std::span<const std::string> candidates) {
  constexpr size_t kLongestName = 64;  // a longer argument is no typing mistake
  if (name.size() > kLongestName) return std::nullopt;
  const size_t letters = name.size() - std::min(name.size(), name.find_first_not_of('-'));
  size_t best = std::max<size_t>(1, letters / 3) + 1;
  std::optional<std::string> nearest;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(Lower(name), Lower(candidate));
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace godwit
