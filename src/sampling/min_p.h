// Min-p (Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling"): the tokens that are at least
// min_p times as probable as the likeliest one.
#pragma once

#include "sampling/candidates.h"

namespace godwit {

// Keeps at least one candidate and the order. min_p in [0, 1]; 0 changes nothing.
void KeepMinP(Candidates& candidates, float min_p);

}  // namespace godwit
