// Candidates: the tokens that may still be drawn, with their probabilities.
//
// TopK fills the list, Softmax gives it probabilities, the filters (top_p.h, min_p.h, eta.h) shrink
// it and renormalise, in the order of SamplerOptions::steps. None of them allocates beyond the
// capacity it was given. Probabilities are double: sums over 150,000 tokens have to tell 1 from 1 -
// 1e-9. The list is in order of Likelier if a filter had to sort it, else in order of token ids.
// Either way the order is a pure function of the logits and the options, and therefore the draw is,
// too.
#pragma once

#include <cstdint>
#include <vector>

namespace godwit {

struct Candidate {
  int32_t token;
  float logit;
  double probability;
};

using Candidates = std::vector<Candidate>;

// A strict total order: equal logits go by token id, lowest first.
inline bool Likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

// probability = softmax(logit / temperature), temperature > 0.
void Softmax(Candidates& candidates, float temperature);

// Scales the probabilities to a sum of 1.
void Normalize(Candidates& candidates);

}  // namespace godwit
