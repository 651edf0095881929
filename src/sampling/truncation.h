// Truncation of a distribution: which tokens stay candidates. Each Keep...() leaves at least one;
// those that look at probabilities scale what is left to the sum of 1.
#pragma once

#include <cstddef>
#include <span>

#include "sampling/candidates.h"

namespace godwit {

// The capacity that TopK() needs in `candidates` so as not to allocate.
size_t TopKCapacity(int top_k, size_t vocab);

// Top-k (Fan et al. 2018). Fills `candidates` with the top_k largest of `logits` ([vocab] f32, no
// NaN), likeliest first; of equal logits the lower ids win. With top_k = 0, or of at least the
// vocabulary's size, with all of them in order of ids. Tokens at -inf are never candidates.
// Probabilities are not set yet.
void TopK(std::span<const float> logits, int top_k, Candidates& candidates);

// Keeps the top_k likeliest of what other steps left, likeliest first, and their probabilities; 0
// changes nothing.
void KeepTopK(Candidates& candidates, int top_k);

// Top-p, nucleus sampling (Holtzman et al. 2019, "The Curious Case of Neural Text Degeneration"):
// the fewest tokens, likeliest first, whose probabilities sum to at least p. Leaves them likeliest
// first. top_p in [0, 1]; 1 changes nothing.
void KeepTopP(Candidates& candidates, float top_p);

// Min-p (Nguyen et al. 2024, "Turning Up the Heat: Min-p Sampling"): the tokens that are at least
// min_p times as probable as the likeliest one, in their order. min_p in [0, 1]; 0 changes nothing.
void KeepMinP(Candidates& candidates, float min_p);

// Eta sampling (Hewitt et al. 2022, "Truncation Sampling as Language Model Desmoothing", section
// 4.2): drops tokens below min(epsilon, sqrt(epsilon) * exp(-entropy)). An absolute floor that
// yields where the distribution is flat, so that many equally unlikely tokens survive together.
// Keeps the order, and the likeliest. epsilon in [0, 1]; 0 changes nothing.
void KeepEta(Candidates& candidates, float epsilon);

}  // namespace godwit
