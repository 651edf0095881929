#include "ops/attention_state.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

namespace godwit::ops {

void ClearStates(int64_t head_dim, int64_t rows, float* states) {
  const int64_t stride = StateStride(head_dim);
  std::fill_n(states, rows * stride, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    states[row * stride] = -std::numeric_limits<float>::infinity();
  }
}

void MergeStates(const kernels::KernelTable& kernels, int64_t head_dim, int64_t rows,
                 const float* from, float* into) {
  const int64_t stride = StateStride(head_dim);
  for (int64_t row = 0; row < rows; ++row) {
    kernels.merge_state(from + row * stride, head_dim, into + row * stride);
  }
}

void FinishState(const kernels::KernelTable& kernels, int64_t head_dim, const float* sink_logit,
                 float* state, float* out) {
  if (sink_logit != nullptr) {
    assert(head_dim <= kernels::kMaxHeadDim);
    alignas(64) std::array<float, StateStride(kernels::kMaxHeadDim)> sink;
    ClearStates(head_dim, 1, sink.data());
    const double score = double{*sink_logit} * std::numbers::log2e;
    if (score != -std::numeric_limits<double>::infinity()) {
      sink[0] = static_cast<float>(std::ceil(score));
      sink[kernels::kStateLanes] = static_cast<float>(std::exp2(score - std::ceil(score)));
    }
    kernels.merge_state(sink.data(), head_dim, state);
  }
  kernels.finish_state(state, head_dim, out);
}

}  // namespace godwit::ops
