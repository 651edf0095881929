#include "eval/distinct.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <vector>

namespace godwit::eval {

double DistinctShare(std::span<const int32_t> tokens, int64_t n) {
  assert(n >= 1);
  const int64_t runs = std::ssize(tokens) - n + 1;
  if (runs < 1) return 1;
  const auto run_at = [&](int64_t at) { return tokens.subspan(at, n); };
  std::vector<int64_t> order(runs);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](int64_t a, int64_t b) {
    return std::ranges::lexicographical_compare(run_at(a), run_at(b));
  });
  int64_t distinct = 1;
  for (size_t i = 1; i < order.size(); ++i) {
    distinct += std::ranges::equal(run_at(order[i - 1]), run_at(order[i])) ? 0 : 1;
  }
  return static_cast<double>(distinct) / static_cast<double>(runs);
}

}  // namespace godwit::eval
