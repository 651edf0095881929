#include "ops/attention_state.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

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
    assert(head_dim <= kMaxHeadDim);
    alignas(64) std::array<float, StateStride(kMaxHeadDim)> sink;
    std::fill_n(sink.data(), StateStride(head_dim), 0.0f);
    sink[0] = *sink_logit;
    sink[1] = 1;
    kernels.merge_state(sink.data(), head_dim, state);
  }
  kernels.finish_state(state, head_dim, out);
}

}  // namespace godwit::ops
