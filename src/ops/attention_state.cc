#include "ops/attention_state.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace godwit::ops {

void ClearStates(int64_t value_dim, int64_t rows, float* states) {
  const int64_t stride = StateStride(value_dim);
  std::fill_n(states, rows * stride, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    states[row * stride] = -std::numeric_limits<float>::infinity();
  }
}

void MergeStates(const kernels::KernelTable& kernels, int64_t value_dim, int64_t rows,
                 const float* from, float* into) {
  const int64_t stride = StateStride(value_dim);
  for (int64_t row = 0; row < rows; ++row) {
    kernels.merge_state(from + row * stride, value_dim, into + row * stride);
  }
}

void PackStates(int64_t value_dim, int64_t rows, const float* states, float* packed) {
  for (int64_t row = 0; row < rows; ++row) {
    const float* const state = states + row * StateStride(value_dim);
    float* const to = packed + row * PackedState(value_dim);
    to[0] = state[0];
    to[1] = std::accumulate(state + kernels::kStateLanes, state + kernels::kStateHeader, 0.0f);
    std::copy_n(state + kernels::kStateHeader, value_dim, to + 2);
  }
}

void UnpackStates(int64_t value_dim, int64_t rows, const float* packed, float* states) {
  ClearStates(value_dim, rows, states);
  for (int64_t row = 0; row < rows; ++row) {
    const float* const from = packed + row * PackedState(value_dim);
    float* const state = states + row * StateStride(value_dim);
    state[0] = from[0];
    state[kernels::kStateLanes] = from[1];
    std::copy_n(from + 2, value_dim, state + kernels::kStateHeader);
  }
}

void FinishState(const kernels::KernelTable& kernels, int64_t value_dim, const float* sink_logit,
                 float* state, float* out) {
  if (sink_logit != nullptr) {
    assert(value_dim <= kernels::kMaxHeadDim);
    alignas(64) std::array<float, StateStride(kernels::kMaxHeadDim)> sink;
    ClearStates(value_dim, 1, sink.data());
    const double score = double{*sink_logit} * std::numbers::log2e;
    if (score != -std::numeric_limits<double>::infinity()) {
      sink[0] = static_cast<float>(std::ceil(score));
      sink[kernels::kStateLanes] = static_cast<float>(std::exp2(score - std::ceil(score)));
    }
    kernels.merge_state(sink.data(), value_dim, state);
  }
  kernels.finish_state(state, value_dim, out);
}

}  // namespace godwit::ops
