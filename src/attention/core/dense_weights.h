// The weights of dense attention, computed anew in double from keys as they are stored. They are
// for measurements only: attention itself keeps no weights.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/core/geometry.h"
#include "attention/core/policy.h"

namespace godwit {

struct DenseWeights {
  std::vector<double> weights;  // [position + 1], of sum 1; 0 for keys that the model hides
  double log_sum = 0;           // the logarithm of the sum of exp(score)
};

// The weights of all keys up to the run's first position for a query of the layer. q: [head_dim],
// as RunQueries has it; head: of the layer's query heads. A constant sink logit takes no weight.
DenseWeights ComputeDenseWeights(const AttentionGeometry& geometry, const RowRun& run,
                                 int64_t layer, const float* q, int64_t head);

// Throws Error(kUnsupported) for models whose queries see more than the layer's own keys, or other
// heads in each layer. measured: what is not measured of them, for the message.
void RequireDenseWeights(const AttentionGeometry& geometry, const char* measured);

}  // namespace godwit
