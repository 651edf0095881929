#include <cmath>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::norm_test {
namespace {

class NormTest : public IsaTest {
 protected:
  // The bound of the error: chains have at most n / 8 + 8 additions, and the square root halves
  // their error. y: the size of the result before the bias.
  static double Tolerance(int64_t n, double y) { return (n / 8 + 16) * kEpsilon / 2 * y; }
};
GODWIT_FOR_EVERY_ISA(NormTest);

TEST_P(NormTest, RmsNormMatchesScalar) {
  RandomFloats random(1);
  for (const int64_t n : kOddSizes) {
    for (const int64_t offset : {0, 3}) {
      Guarded<float> x(n, offset), weight(n, 1), want(n), got(n, offset);
      random.Fill(x, -3, 3);
      random.Fill(weight);
      scalar().rms_norm(x.data(), weight.data(), 1e-5f, n, want.data());
      table().rms_norm(x.data(), weight.data(), 1e-5f, n, got.data());
      EXPECT_TRUE(got.GuardsIntact());
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(got[i], want[i], Tolerance(n, std::abs(want[i]))) << i << " of " << n;
      }
      table().rms_norm(x.data(), weight.data(), 1e-5f, n, x.data());
      EXPECT_EQ(std::memcmp(x.data(), got.data(), n * 4), 0) << "in place";
    }
  }
}

TEST_P(NormTest, LayerNormMatchesScalar) {
  RandomFloats random(2);
  for (const int64_t n : kOddSizes) {
    for (const bool with_bias : {false, true}) {
      Guarded<float> x(n, 3), weight(n, 1), bias(n, 2), want(n), got(n, 5);
      random.Fill(x, -3, 5);
      random.Fill(weight);
      random.Fill(bias);
      const float* b = with_bias ? bias.data() : nullptr;
      scalar().layer_norm(x.data(), weight.data(), b, 1e-2f, n, want.data());
      table().layer_norm(x.data(), weight.data(), b, 1e-2f, n, got.data());
      EXPECT_TRUE(got.GuardsIntact());
      // The mean is off by its own sum's error, which counts against the spread: at least 0.1.
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(got[i], want[i], Tolerance(n, 5 / 0.1)) << i << " of " << n;
      }
      table().layer_norm(x.data(), weight.data(), b, 1e-2f, n, x.data());
      EXPECT_EQ(std::memcmp(x.data(), got.data(), n * 4), 0) << "in place";
    }
  }
}

// A mean far from zero: the variance sums squared distances, and is no difference of large squares.
TEST_P(NormTest, LayerNormOfADistantMean) {
  constexpr int64_t kSize = 64;
  std::vector<float> x(kSize), weight(kSize, 1), out(kSize);
  for (int64_t i = 0; i < kSize; ++i) x[i] = 10000.0f + (i % 2 ? 1.0f : -1.0f);
  table().layer_norm(x.data(), weight.data(), nullptr, 0, kSize, out.data());
  for (int64_t i = 0; i < kSize; ++i) EXPECT_NEAR(out[i], i % 2 ? 1 : -1, 4 * kEpsilon);
}

TEST_P(NormTest, ZerosStayZeros) {
  std::vector<float> x(37, 0.0f), weight(37, 2), out(37, kNan);
  table().rms_norm(x.data(), weight.data(), 1e-6f, 37, out.data());
  for (const float y : out) EXPECT_EQ(y, 0);
  table().layer_norm(x.data(), weight.data(), nullptr, 1e-6f, 37, out.data());
  for (const float y : out) EXPECT_EQ(y, 0);
}

TEST_P(NormTest, NanFillsTheRow) {
  std::vector<float> x(37, 1.0f), weight(37, 2), out(37);
  x[33] = kNan;
  table().rms_norm(x.data(), weight.data(), 1e-6f, 37, out.data());
  for (const float y : out) EXPECT_TRUE(std::isnan(y));
  table().layer_norm(x.data(), weight.data(), nullptr, 1e-6f, 37, out.data());
  for (const float y : out) EXPECT_TRUE(std::isnan(y));
}

}  // namespace
}  // namespace godwit::kernels::norm_test
