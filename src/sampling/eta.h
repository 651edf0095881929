// Eta sampling (Hewitt et al. 2022, "Truncation Sampling as Language Model Desmoothing", section
// 4.2): drops tokens below min(epsilon, sqrt(epsilon) * exp(-entropy)). An absolute floor that
// yields where the distribution is flat, so that many equally unlikely tokens survive together.
#pragma once

#include "sampling/candidates.h"

namespace godwit {

// Keeps at least the likeliest candidate, and the order. epsilon in [0, 1]; 0 changes nothing.
void KeepEta(Candidates& candidates, float epsilon);

}  // namespace godwit
