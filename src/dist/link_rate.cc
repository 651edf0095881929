#include "dist/link_rate.h"

#include <bit>
#include <chrono>
#include <cstddef>

namespace godwit {

std::vector<double> MeasureLinks(Communicator& ranks) {
  using Clock = std::chrono::steady_clock;
  // The size of the frames that ranks send of a context, so that latency counts as it will then.
  constexpr size_t kFrame = size_t{4} << 20;
  std::vector<double> rates(ranks.size());
  std::vector<std::byte> mine(kFrame), theirs(kFrame);
  const auto turns = std::bit_ceil(static_cast<unsigned>(ranks.size()));
  for (unsigned turn = 1; turn < turns; ++turn) {
    const unsigned other = static_cast<unsigned>(ranks.rank()) ^ turn;
    ranks.Barrier(nullptr);
    if (other >= rates.size()) continue;
    ranks.Swap(mine, theirs, static_cast<int>(other), nullptr);
    const auto begin = Clock::now();
    ranks.Swap(mine, theirs, static_cast<int>(other), nullptr);
    rates[other] = kFrame / std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return rates;
}

}  // namespace godwit
