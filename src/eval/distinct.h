// Distinct-n (Li et al., arXiv 1510.03055): the share of a text that is said once.
#pragma once

#include <cstdint>
#include <span>

namespace godwit::eval {

// Different runs of n >= 1 tokens, as a share of all runs of n; 1 for a text without any.
double DistinctShare(std::span<const int32_t> tokens, int64_t n);

}  // namespace godwit::eval
