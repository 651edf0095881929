#include "ops/quantize_asymmetric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace godwit::ops::quantize_asymmetric_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<int> Integers(const std::vector<float>& x, AsymmetricScale scale,
                          RowQuantization* result) {
  std::vector<int8_t> out((x.size() + 3) / 4 * 4, 99);
  *result = QuantizeRowAsymmetric(x.data(), scale, std::ssize(x), out.data());
  return {out.begin(), out.end()};
}

AsymmetricScale AsymmetricScaleOf(const std::vector<float>& x) {
  return AsymmetricScaleOf(RangeOf(x.data(), std::ssize(x)));
}

TEST(QuantizeAsymmetric, UsesAllIntegers) {
  const std::vector<float> x = {-1, 50.5f, 254, 0, 49.5f};
  const AsymmetricScale scale = AsymmetricScaleOf(x);
  EXPECT_EQ(scale.scale, 1.0f);
  EXPECT_EQ(scale.zero_point, -127);
  RowQuantization result;
  EXPECT_EQ(Integers(x, scale, &result), (std::vector<int>{-128, -77, 127, -127, -77, 0, 0, 0}))
      << "ties go to the even integer before the zero point is added";
  EXPECT_EQ(result.scale, 1.0f);
  EXPECT_EQ(result.sum, -128 - 77 + 127 - 127 - 77);
}

TEST(QuantizeAsymmetric, ZeroLiesInEveryRange) {
  EXPECT_EQ(AsymmetricScaleOf({5, 255}).zero_point, -128);
  EXPECT_EQ(AsymmetricScaleOf({5, 255}).scale, 1.0f);
  EXPECT_EQ(AsymmetricScaleOf({-5, -255}).zero_point, 127);
  RowQuantization result;
  EXPECT_EQ(Integers({0, -0.0f, 0, 0}, AsymmetricScaleOf({0, -0.0f}), &result),
            std::vector<int>(4, -128));
  EXPECT_TRUE(std::isfinite(result.scale));
}

TEST(QuantizeAsymmetric, HugeRowsDoNotOverflow) {
  const std::vector<float> x = {3.4e38f, -3.4e38f, 0, 3.4e38f};
  const AsymmetricScale scale = AsymmetricScaleOf(x);
  EXPECT_TRUE(std::isfinite(scale.scale));
  RowQuantization result;
  EXPECT_EQ(Integers(x, scale, &result), (std::vector<int>{127, -128, scale.zero_point, 127}));
}

TEST(QuantizeAsymmetric, AGivenScaleCuts) {
  RowQuantization result;
  EXPECT_EQ(Integers({1000, -1000, 2, 1e38f}, {.scale = 0.5f, .zero_point = 10}, &result),
            (std::vector<int>{127, -128, 14, 127}));
}

TEST(QuantizeAsymmetric, NonFiniteRowHasScaleNan) {
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    const std::vector<float> x = {1, bad, -2, 0};
    const ValueRange range = RangeOf(x.data(), 4);
    EXPECT_TRUE(std::isnan(range.min) && std::isnan(range.max));
    const ValueRange joined = Join({-1, 2}, range);
    EXPECT_EQ(joined.min, -1) << "other rows go on";
    EXPECT_EQ(joined.max, 2);
    for (const AsymmetricScale scale : {AsymmetricScaleOf(range), AsymmetricScale{0.1f, 3}}) {
      RowQuantization result;
      Integers(x, scale, &result);
      EXPECT_TRUE(std::isnan(result.scale));
    }
  }
}

}  // namespace
}  // namespace godwit::ops::quantize_asymmetric_test
