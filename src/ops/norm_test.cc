#include "ops/norm.h"

#include "ops/test_support.h"

namespace godwit::ops::norm_test {
namespace {

// The norm of one row, or of one head of it, in double.
std::vector<double> Oracle(const NormWeights& norm, const float* x) {
  const size_t n = norm.weight.size();
  double mean = 0;
  if (norm.kind == NormKind::kLayer) {
    for (size_t i = 0; i < n; ++i) mean += x[i];
    mean /= static_cast<double>(n);
  }
  double square = 0;
  for (size_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
  const double scale = 1 / std::sqrt(square / static_cast<double>(n) + norm.epsilon);
  std::vector<double> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i] = (x[i] - mean) * scale * norm.weight[i] + (norm.bias.empty() ? 0 : norm.bias[i]);
  }
  return out;
}

// Expects `heads` normalised runs in each row of x.
void ExpectNormed(const NormWeights& norm, const GappedMatrix& x, const GappedMatrix& out) {
  const auto n = static_cast<int64_t>(norm.weight.size());
  // The error of sums of n terms, a root, and products with values up to sqrt(n).
  const double tolerance = 4.0 * kEpsilon * static_cast<double>(n + 8) + kEpsilon;
  for (int64_t row = 0; row < x.view().rows; ++row) {
    for (int64_t begin = 0; begin < x.view().cols; begin += n) {
      const std::vector<double> expected = Oracle(norm, x.view().Row(row) + begin);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(out.At(row, begin + i), expected[i], tolerance)
            << "row " << row << " column " << begin + i;
      }
    }
  }
  EXPECT_TRUE(out.GapsIntact());
}

NormWeights RandomNorm(NormKind kind, int64_t n, bool bias) {
  return {.kind = kind,
          .epsilon = 1e-2f,
          .weight = GappedMatrix(1, n, 1, 0.5f, 1.5f).Row(0),
          .bias = bias ? GappedMatrix(1, n, 2).Row(0) : std::vector<float>()};
}

class NormTest : public OpsTest {
 protected:
  static std::vector<NormWeights> Norms(int64_t n) {
    return {RandomNorm(NormKind::kRms, n, false), RandomNorm(NormKind::kLayer, n, false),
            RandomNorm(NormKind::kLayer, n, true)};
  }
};

TEST_P(NormTest, EveryRowOnItsOwn) {
  for (const int64_t cols : {1, 5, 16, 31, 64, 333}) {
    for (const NormWeights& norm : Norms(cols)) {
      const GappedMatrix x(70, cols, 3, -2, 3);
      GappedMatrix out(70, cols), threaded(70, cols);
      Norm(On(one_), x.view(), norm, out.view());
      ExpectNormed(norm, x, out);
      Norm(On(three_), x.view(), norm, threaded.view());
      EXPECT_EQ(threaded.Values(), out.Values());
    }
  }
}

TEST_P(NormTest, InPlace) {
  for (const NormWeights& norm : Norms(37)) {
    const GappedMatrix x(9, 37, 4);
    GappedMatrix out(9, 37);
    Norm(On(one_), x.view(), norm, out.view());
    GappedMatrix same = x;
    Norm(On(one_), same.view(), norm, same.view());
    EXPECT_EQ(same.Values(), out.Values());
  }
}

TEST_P(NormTest, EveryHeadOnItsOwn) {
  for (const int64_t head_dim : {1, 8, 20, 33}) {
    for (const int64_t heads : {1, 3, 8}) {
      const NormWeights norm = RandomNorm(NormKind::kRms, head_dim, false);
      const GappedMatrix x(6, heads * head_dim, 5, -3, 3);
      GappedMatrix out = x;
      NormHeads(On(three_), norm, head_dim, out.view());
      ExpectNormed(norm, x, out);
    }
  }
}

TEST_P(NormTest, EveryHeadWithItsOwnGain) {
  const int64_t head_dim = 20, heads = 3;
  const NormWeights all = RandomNorm(NormKind::kLayer, heads * head_dim, false);
  const GappedMatrix x(6, heads * head_dim, 5, -3, 3);
  GappedMatrix out = x;
  NormHeads(On(three_), all, head_dim, out.view());
  for (int64_t head = 0; head < heads; ++head) {
    NormWeights own = all;
    const auto begin = all.weight.begin() + head * head_dim;
    own.weight.assign(begin, begin + head_dim);
    for (int64_t row = 0; row < 6; ++row) {
      const auto expected = Oracle(own, x.view().Row(row) + head * head_dim);
      for (int64_t i = 0; i < head_dim; ++i) {
        ASSERT_NEAR(out.At(row, head * head_dim + i), expected[i], 1e-5);
      }
    }
  }
}

GODWIT_FOR_EVERY_ISA(NormTest);

}  // namespace
}  // namespace godwit::ops::norm_test
