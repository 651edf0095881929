// The correction of a weight for the errors of weights rounded before it, so that a layer's output
// moves least on its calibration inputs. This is GPTQ (arXiv 2210.17323) in the form of QuIP (arXiv
// 2307.13304), which needs no inverse. Theorem 6 of QuIP shows that both are the same.
//
// H is the sums of products of inputs. An error e of a row of weights costs e H e^T. With
// H = (U + 1) D (U + 1)^T and U strictly upper triangular, it is the sum over k of
//
//     D_k (e_k + sum over j < k of e_j U_jk)^2
//
// Rounded in that order, weight k aims at w_k - sum over j < k of e_j U_jk.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/exec.h"

namespace godwit::quant {

class RoundingFeedback {
 public:
  // Rows that are rounded together.
  static constexpr int64_t kLanes = 8;

  // products [inputs, inputs]: H, symmetric, of inputs before they were divided by `divisors`
  // [inputs] (or empty: 1). 1 % of the mean of H's diagonal is added to the diagonal, as in the
  // paper. Inputs that never came then cost little, and a solution always exists. The inputs of the
  // largest squares are rounded first, while most others can still make up for their error.
  RoundingFeedback(const Exec& exec, std::vector<float> products, std::span<const float> divisors);

  // [inputs] the diagonal of H: the cost of a weight's error by itself.
  std::span<const float> importance() const { return importance_; }

  // Rounds kLanes rows w [inputs, kLanes]. round(input, values [kLanes]) replaces the value that
  // each row aims at by the value that it gets. errors [inputs, kLanes] is scratch.
  template <class Round>
  void Run(std::span<const float> w, std::span<float> errors, const Round& round) const {
    const auto n = std::ssize(order_);
    for (int64_t k = 0; k < n; ++k) {
      const int64_t input = order_[k];
      float target[kLanes], values[kLanes];
      Target(k, errors.data(), target);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        values[lane] = w[input * kLanes + lane] - target[lane];
      }
      round(input, values);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        errors[k * kLanes + lane] = values[lane] - w[input * kLanes + lane];
      }
    }
  }

 private:
  // sums [kLanes]: the sum over j < k of errors[j] * U_jk.
  void Target(int64_t k, const float* errors, float* sums) const;

  std::vector<float> importance_;
  std::vector<int64_t> order_;   // inputs in the order of rounding
  std::vector<float> feedback_;  // [inputs, inputs]: row k has U_jk for j < k
};

}  // namespace godwit::quant
