#include "quant/rounding_feedback.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quant/quant_test_support.h"

namespace godwit::quant::rounding_feedback_test {
namespace {

constexpr int64_t kLanes = RoundingFeedback::kLanes;

// H of n random inputs, and rows w to round to integers, one input after another.
struct Problem {
  explicit Problem(int64_t inputs) : n(inputs), products(static_cast<size_t>(n * n)) {
    std::mt19937 random(static_cast<uint32_t>(n));
    std::normal_distribution<float> normal;
    std::vector<float> x(n);
    for (int64_t t = 0; t < 3 * n; ++t) {
      float last = 0;  // neighbours are alike, and later ones larger
      for (size_t i = 0; i < x.size(); ++i) {
        last = x[i] = (0.8f * last + normal(random)) * (1 + static_cast<float>(i % 7) / 7);
      }
      for (size_t i = 0; i < x.size(); ++i) {
        for (size_t j = 0; j < x.size(); ++j) products[i * x.size() + j] += x[i] * x[j];
      }
    }
    for (int64_t i = 0; i < n * kLanes; ++i) w.push_back(3 * normal(random));
  }

  int64_t n;
  std::vector<float> products, w;
};

// The paper's GPTQ (algorithm 1), in double, with the inverse of H. Each step takes the inverse of
// the remaining inputs.
std::vector<double> Paper(const Problem& problem, const std::vector<int64_t>& order) {
  const auto n = static_cast<size_t>(problem.n);
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += problem.products[i * n + i] / static_cast<double>(n);
  std::vector<double> inverse(n * n), h(n * n);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      h[i * n + j] =
          problem.products[static_cast<size_t>(order[i]) * n + static_cast<size_t>(order[j])] +
          (i == j ? 0.01 * mean : 0);
      inverse[i * n + j] = i == j;
    }
  }
  for (size_t k = 0; k < n; ++k) {  // Gauss and Jordan
    const double pivot = h[k * n + k];
    for (size_t j = 0; j < n; ++j) h[k * n + j] /= pivot, inverse[k * n + j] /= pivot;
    for (size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = h[i * n + k];
      for (size_t j = 0; j < n; ++j) {
        h[i * n + j] -= factor * h[k * n + j];
        inverse[i * n + j] -= factor * inverse[k * n + j];
      }
    }
  }
  std::vector<double> integers(n * kLanes);
  for (size_t lane = 0; lane < kLanes; ++lane) {
    std::vector<double> w(n), left = inverse;
    for (size_t i = 0; i < n; ++i) w[i] = problem.w[static_cast<size_t>(order[i]) * kLanes + lane];
    for (size_t k = 0; k < n; ++k) {
      const double q = std::nearbyint(w[k]), error = (w[k] - q) / left[k * n + k];
      integers[static_cast<size_t>(order[k]) * kLanes + lane] = q;
      for (size_t j = k + 1; j < n; ++j) w[j] -= error * left[k * n + j];
      const double pivot = left[k * n + k];
      for (size_t i = k + 1; i < n; ++i) {
        const double factor = left[i * n + k] / pivot;
        for (size_t j = k + 1; j < n; ++j) left[i * n + j] -= factor * left[k * n + j];
      }
    }
  }
  return integers;
}

TEST(RoundingFeedback, RoundsAsGptqDoes) {
  for (const int64_t inputs : {1, 2, 5, 63, 64, 65, 130}) {
    const Problem problem(inputs);
    const RoundingFeedback feedback(*TestExec(2), problem.products, {});
    std::vector<float> got(problem.w.size()), errors(problem.w.size());
    std::vector<int64_t> order;
    feedback.Run(problem.w, errors, [&](int64_t input, float* values) {
      order.push_back(input);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        values[lane] = std::nearbyint(values[lane]);
        got[input * kLanes + lane] = values[lane];
      }
    });
    for (size_t k = 1; k < order.size(); ++k) {
      EXPECT_GE(feedback.importance()[order[k - 1]], feedback.importance()[order[k]]);
    }
    const std::vector<double> want = Paper(problem, order);
    // A value halfway between two integers may go either way, and change later ones.
    int64_t differ = 0;
    for (size_t i = 0; i < got.size(); ++i) differ += got[i] != want[i];
    EXPECT_LE(differ, std::ssize(got) / 100) << inputs;
  }
}

TEST(RoundingFeedback, DividedInputsGiveTheSameRounding) {
  const Problem problem(20);
  std::vector<float> divisors, divided = problem.products;
  for (int i = 0; i < 20; ++i) divisors.push_back(std::ldexp(1.0f, i % 5 - 2));
  for (size_t i = 0; i < 20; ++i) {
    for (size_t j = 0; j < 20; ++j) divided[i * 20 + j] /= divisors[i] * divisors[j];
  }
  const RoundingFeedback a(*TestExec(2), problem.products, divisors), b(*TestExec(2), divided, {});
  EXPECT_TRUE(std::ranges::equal(a.importance(), b.importance()));
}

// All inputs were zero, and no division by zero follows.
TEST(RoundingFeedback, ZeroInputsGiveNoFeedback) {
  const RoundingFeedback feedback(*TestExec(2), std::vector<float>(16), {});
  std::vector<float> w(4 * kLanes, 1.25f), errors(w.size());
  feedback.Run(w, errors, [](int64_t, float* values) {
    for (int64_t lane = 0; lane < kLanes; ++lane) EXPECT_EQ(values[lane], 1.25f);
  });
}

}  // namespace
}  // namespace godwit::quant::rounding_feedback_test
