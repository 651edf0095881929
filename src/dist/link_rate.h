// How fast ranks reach each other.
#pragma once

#include <vector>

#include "dist/communicator.h"

namespace godwit {

// Measures bytes a second between this rank and each other one, to and from at once: [size()], 0
// for itself. All ranks call this together. The pairs of a turn measure side by side, so it takes
// size() turns or at most twice as many. A turn sends a frame each, and another one before it,
// which warms the way.
std::vector<double> MeasureLinks(Communicator& ranks);

}  // namespace godwit
