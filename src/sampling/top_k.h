// Top-k (Fan et al. 2018): the k likeliest tokens.
#pragma once

#include <cstddef>
#include <span>

#include "sampling/candidates.h"

namespace godwit {

// The capacity that TopK() needs in `candidates` so as not to allocate.
size_t TopKCapacity(int top_k, size_t vocab);

// Fills `candidates` with the top_k largest of `logits` ([vocab] f32, no NaN), likeliest first; of
// equal logits the lower ids win. With top_k = 0, or of at least the vocabulary's size, with all of
// them in order of ids. Tokens at -inf are never candidates. Probabilities are not set yet.
void TopK(std::span<const float> logits, int top_k, Candidates& candidates);

// Keeps the top_k likeliest of what other steps left, likeliest first; 0 changes nothing.
void KeepTopK(Candidates& candidates, int top_k);

}  // namespace godwit
