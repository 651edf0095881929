#include "quant/rounding_feedback.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace godwit::quant {
namespace {

constexpr float kDamping = 0.01f;
constexpr int64_t kBlock = 64;  // rows factored before the others are updated

// y -= factor * x
void Subtract(float factor, const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] -= factor * x[i];
}

// Factors the upper triangle of a [n, n], positive definite: a = M^T D M. M has a unit diagonal,
// and D takes the place of the diagonal.
void Factor(const Exec& exec, int64_t n, float* a) {
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    for (int64_t i = begin; i < end; ++i) {
      float* row = a + i * n;
      for (int64_t c = begin; c < i; ++c) {
        const float* above = a + c * n;
        Subtract(above[c] * above[i], above + i, n - i, row + i);
      }
      const float inverse = 1 / row[i];
      for (int64_t j = i + 1; j < n; ++j) row[j] *= inverse;
    }
    exec.ParallelRows(n - end, kBlock * (n - end), [&](int64_t from_end) {
      const int64_t i = end + from_end;
      for (int64_t c = begin; c < end; ++c) {
        const float* above = a + c * n;
        Subtract(above[c] * above[i], above + i, n - i, a + i * n + i);
      }
    });
  }
}

}  // namespace

RoundingFeedback::RoundingFeedback(const Exec& exec, std::vector<float> products,
                                   std::span<const float> divisors)
    : feedback_(products.size()) {
  const auto n = static_cast<int64_t>(std::sqrt(static_cast<double>(products.size())));
  const auto divisor = [&](int64_t i) { return divisors.empty() ? 1.0f : divisors[i]; };
  double mean = 0;
  for (int64_t i = 0; i < n; ++i) {
    importance_.push_back(products[i * n + i] / divisor(i) / divisor(i));
    mean += importance_.back() / static_cast<double>(n);
  }
  // If inputs were always zero, any H will do.
  const float damping = mean > 0 ? kDamping * static_cast<float>(mean) : 1;
  for (float& x : importance_) x += damping;
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_,
                           [&](int64_t a, int64_t b) { return importance_[a] > importance_[b]; });

  // In reverse order, H is M^T D M with M upper triangular. In order that is (U + 1) D (U + 1)^T.
  std::vector<float>& backwards = feedback_;
  const auto at = [&](int64_t i) { return order_[n - 1 - i]; };
  exec.ParallelRows(n, n, [&](int64_t i) {
    for (int64_t j = i; j < n; ++j) {
      backwards[i * n + j] = i == j ? importance_[at(i)]
                                    : products[at(i) * n + at(j)] / divisor(at(i)) / divisor(at(j));
    }
  });
  Factor(exec, n, backwards.data());
  // M[n - 1 - k, n - 1 - j] is U_jk, so that after the reversal row k has it at j.
  std::ranges::reverse(backwards);
}

void RoundingFeedback::Target(int64_t k, const float* errors, float* sums) const {
  const float* row = feedback_.data() + k * std::ssize(order_);
  float even[kLanes] = {}, odd[kLanes] = {};  // two independent chains are faster
  int64_t j = 0;
  for (; j + 2 <= k; j += 2) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      even[lane] += row[j] * errors[j * kLanes + lane];
      odd[lane] += row[j + 1] * errors[(j + 1) * kLanes + lane];
    }
  }
  if (j < k) {
    for (int64_t lane = 0; lane < kLanes; ++lane) even[lane] += row[j] * errors[j * kLanes + lane];
  }
  for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] = even[lane] + odd[lane];
}

}  // namespace godwit::quant
