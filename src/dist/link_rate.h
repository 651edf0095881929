// The speed between ranks.
#pragma once

#include <vector>

#include "dist/communicator.h"

namespace godwit {

// Measures bytes a second between this rank and each other one, in both directions at once:
// [size()], 0 for itself. All ranks call this together. The pairs of a turn measure side by side,
// so it takes size() turns or at most twice as many. Each pair swaps one frame to warm the way, and
// measures the next.
std::vector<double> MeasureLinks(Communicator& ranks);

}  // namespace godwit
