// Shared parts of this room's tests: random logits, and candidates made from them.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "sampling/candidates.h"
#include "sampling/truncation.h"

namespace godwit {

// Normal with standard deviation `spread` around 0, in f32; a few ties among them.
inline std::vector<float> RandomLogits(size_t vocab, uint64_t seed, double spread = 3) {
  std::vector<float> logits(vocab);
  for (size_t i = 0; i < vocab; ++i) {
    const auto position = static_cast<int64_t>(i);
    const double u = 1 - Uniform(seed, /*sequence=*/1, position, /*draw=*/0);
    const double v = Uniform(seed, /*sequence=*/1, position, /*draw=*/1);
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    logits[i] = static_cast<float>(std::round(normal * spread * 256) / 256);
  }
  return logits;
}

inline Candidates MakeCandidates(const std::vector<float>& logits, float temperature = 1) {
  Candidates candidates;
  TopK(logits, /*top_k=*/0, candidates);
  Softmax(candidates, temperature);
  return candidates;
}

// From probabilities that need not sum to 1.
inline Candidates FromProbabilities(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return MakeCandidates(logits);
}

inline std::vector<int32_t> Tokens(const Candidates& candidates) {
  std::vector<int32_t> tokens;
  for (const Candidate& candidate : candidates) tokens.push_back(candidate.token);
  return tokens;
}

inline double Mass(const Candidates& candidates) {
  double sum = 0;
  for (const Candidate& candidate : candidates) sum += candidate.probability;
  return sum;
}

}  // namespace godwit
