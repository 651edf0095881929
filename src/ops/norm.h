// Normalisation of rows.
#pragma once

#include <vector>

#include "ops/exec.h"
#include "ops/linear_rows.h"
#include "tensor/view.h"

namespace godwit::ops {

enum class NormKind { kRms, kLayer };

// weight [cols]; bias [cols] or empty (always empty for kRms).
struct NormWeights {
  NormKind kind = NormKind::kRms;
  float epsilon = 0;
  std::vector<float> weight;
  std::vector<float> bias;
};

// Each row of x [rows, cols] normalised on its own. out may be x.
void Norm(const Exec& exec, MatrixView<const float> x, const NormWeights& norm,
          MatrixView<float> out);
// The same for the linear layer that follows, in the form that it reads.
void Norm(const Exec& exec, MatrixView<const float> x, const NormWeights& norm, LinearRows& out);

// Each head of each row normalised on its own, in place: x [rows, heads * head_dim]. The weight has
// [head_dim] numbers for all heads (the q and k norms of Qwen3), or [heads * head_dim] (Command
// R+); there is no bias.
void NormHeads(const Exec& exec, const NormWeights& norm, int64_t head_dim, MatrixView<float> x);

}  // namespace godwit::ops
