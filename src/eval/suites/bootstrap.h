// The certainty of a mean: the bootstrap's percentile interval (Efron, "Bootstrap Methods: Another
// Look at the Jackknife", 1979). It assumes no distribution of the scores.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::eval {

struct MeanInterval {
  double mean, low, high;
};

// The mean of at least one value and its 95 % interval, from 2,000 resamples that depend on the
// seed alone. Paired differences are values, too.
MeanInterval Bootstrap(std::span<const double> values, uint64_t seed);

}  // namespace godwit::eval
