// Top-p, nucleus sampling (Holtzman et al. 2019, "The Curious Case of Neural Text Degeneration"):
// the fewest tokens, likeliest first, whose probabilities sum to at least p.
#pragma once

#include "sampling/candidates.h"

namespace godwit {

// Keeps at least one candidate; leaves them likeliest first. top_p in [0, 1]; 1 changes nothing.
void KeepTopP(Candidates& candidates, float top_p);

}  // namespace godwit
