// Rows to int8: every instruction set gives the integers of the definition.
#include <cmath>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::quantize_test {
namespace {

class QuantizeTest : public IsaTest {
 protected:
  void ExpectAsScalar(const Guarded<float>& x, float factor, int64_t offset) {
    const int64_t n = x.size();
    const int64_t padded = (n + kQuad - 1) / kQuad * kQuad;
    Guarded<int8_t> want(padded), got(padded, offset);
    const QuantizedSum want_sum = scalar().quantize(x.data(), factor, n, want.data());
    const QuantizedSum got_sum = table().quantize(x.data(), factor, n, got.data());
    EXPECT_TRUE(got.GuardsIntact());
    EXPECT_TRUE(want_sum.finite && got_sum.finite);
    EXPECT_EQ(got_sum.sum, want_sum.sum);
    for (int64_t i = 0; i < padded; ++i) ASSERT_EQ(int{got[i]}, int{want[i]}) << i << " of " << n;
    for (int64_t i = n; i < padded; ++i) ASSERT_EQ(int{got[i]}, 0);
  }
};
GODWIT_FOR_EVERY_ISA(QuantizeTest);

TEST_P(QuantizeTest, MatchesScalar) {
  RandomFloats random(1);
  for (const int64_t n : kOddSizes) {
    for (const int64_t offset : {0, 1, 3}) {
      Guarded<float> x(n, offset);
      random.Fill(x, -3, 3);
      for (const float factor : {0.0f, 1.0f, 42.3f, 1e30f}) ExpectAsScalar(x, factor, offset);
    }
  }
}

TEST_P(QuantizeTest, RoundsToNearestEvenWithinBounds) {
  const float x[] = {0.5f,    1.5f, 2.5f,  -0.5f,  -1.5f,     -2.5f, 126.5f,  127.5f,
                     -127.5f, 1e9f, 3e38f, -3e38f, 0x1p-149f, -0.0f, 2.4999f, 2.5001f};
  const int want[] = {0, 2, 2, 0, -2, -2, 126, 127, -127, 127, 127, -127, 0, 0, 2, 3};
  int8_t out[std::size(x)];
  int sum = 0;
  for (const int value : want) sum += value;
  const QuantizedSum result = table().quantize(x, 1.0f, std::size(x), out);
  EXPECT_TRUE(result.finite);
  EXPECT_EQ(result.sum, sum);
  for (size_t i = 0; i < std::size(x); ++i) EXPECT_EQ(int{out[i]}, want[i]) << x[i];
}

TEST_P(QuantizeTest, SaysWhatIsNotFinite) {
  for (const int64_t n : kOddSizes) {
    for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
      for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
        if (at < 0 || n == 0) continue;
        std::vector<float> x(n, 1.0f);
        std::vector<int8_t> out(static_cast<size_t>(n) + kQuad);
        EXPECT_EQ(table().largest_magnitude(x.data(), n), 1.0f);
        x[at] = bad;
        EXPECT_FALSE(table().quantize(x.data(), 1.0f, n, out.data()).finite);
        EXPECT_TRUE(std::isnan(table().largest_magnitude(x.data(), n)));
      }
    }
  }
}

TEST_P(QuantizeTest, LargestMagnitude) {
  RandomFloats random(2);
  EXPECT_EQ(Bits(table().largest_magnitude(nullptr, 0)), 0u);
  for (const int64_t n : kOddSizes) {
    for (int64_t at = 0; at < n; at += 7) {
      Guarded<float> x(n, at % 5);
      random.Fill(x);
      x[at] = at % 2 == 0 ? -3e38f : 2.0f;
      EXPECT_EQ(table().largest_magnitude(x.data(), n), std::fabs(x[at]));
    }
    const std::vector<float> zeros(n, -0.0f);
    EXPECT_EQ(Bits(table().largest_magnitude(zeros.data(), n)), 0u);
  }
}

}  // namespace
}  // namespace godwit::kernels::quantize_test
