// How sure a mean is: the bootstrap's percentile interval (Efron, "Bootstrap Methods: Another Look
// at the Jackknife", 1979), which asks nothing of how scores are spread.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::eval {

struct MeanInterval {
  double mean, low, high;
};

// Of at least one value; the 95 % interval of the mean, from 2,000 resamples that the seed alone
// decides. Paired differences are values, too.
MeanInterval Bootstrap(std::span<const double> values, uint64_t seed);

}  // namespace godwit::eval
