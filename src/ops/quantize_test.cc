#include "ops/quantize.h"

#include <random>

#include "ops/test_support.h"

namespace godwit::ops::quantize_test {
namespace {

class QuantizeRowTest : public OpsTest {
 protected:
  static std::vector<float> Normal(int64_t n, float deviation) {
    std::mt19937 random(static_cast<uint32_t>(n));
    std::normal_distribution<float> normal(0, deviation);
    std::vector<float> x(n);
    for (float& number : x) number = normal(random);
    return x;
  }
  // [n], padded.
  std::vector<int> Integers(const std::vector<float>& x, RowQuantization* result,
                            float scale = 0) const {
    const auto n = std::ssize(x);
    std::vector<int8_t> out((x.size() + kernels::kQuad - 1) / kernels::kQuad * kernels::kQuad, 99);
    *result = scale > 0 ? QuantizeRowWithScale(table(), x.data(), scale, n, out.data())
                        : QuantizeRow(table(), x.data(), n, out.data());
    return {out.begin(), out.end()};
  }
};

TEST_P(QuantizeRowTest, TheLargestIs127) {
  RowQuantization result;
  EXPECT_EQ(Integers({-2, 1, 0.5f, 0, 0.25f}, &result),
            (std::vector<int>{-127, 64, 32, 0, 16, 0, 0, 0}));
  EXPECT_EQ(result.scale, 2.0f / 127);
  EXPECT_EQ(result.sum, -15);
}

TEST_P(QuantizeRowTest, ZerosAreExact) {
  for (const float tiny : {0.0f, -0.0f, 1e-45f, 1e-38f}) {
    RowQuantization result;
    EXPECT_EQ(Integers({tiny, -tiny, tiny}, &result), std::vector<int>(4, 0));
    EXPECT_EQ(result.scale, 0.0f);
    EXPECT_EQ(result.sum, 0);
  }
}

TEST_P(QuantizeRowTest, HugeRowsDoNotOverflow) {
  RowQuantization result;
  EXPECT_EQ(Integers({3.4e38f, -3.4e38f, 1.7e38f, 1}, &result),
            (std::vector<int>{127, -127, 64, 0}));
  EXPECT_EQ(result.scale, 3.4e38f / 127);
}

TEST_P(QuantizeRowTest, NonFiniteRowHasScaleNan) {
  for (const float bad : {kNan, kernels::kInfinity, -kernels::kInfinity}) {
    for (const float scale : {0.0f, 0.5f}) {
      RowQuantization result;
      EXPECT_EQ(Integers({1, bad, 2}, &result, scale), std::vector<int>(4, 0));
      EXPECT_TRUE(std::isnan(result.scale));
      EXPECT_EQ(result.sum, 0);
    }
  }
}

TEST_P(QuantizeRowTest, AFixedScaleCuts) {
  RowQuantization result;
  EXPECT_EQ(Integers({1, -0.5f, 1000, -1000, 0.25f}, &result, /*scale=*/0.5f),
            (std::vector<int>{2, -1, 127, -127, 0, 0, 0, 0}));
  EXPECT_EQ(result.scale, 0.5f);
  EXPECT_EQ(result.sum, 1);
}

TEST_P(QuantizeRowTest, IsTheSameOnEveryInstructionSet) {
  for (const int64_t n : kernels::kOddSizes) {
    const std::vector<float> x = GappedMatrix(1, n, 3, -5, 5).Row(0);
    std::vector<int8_t> want(static_cast<size_t>(n) + kernels::kQuad), got(want.size());
    const auto expected = QuantizeRow(scalar(), x.data(), n, want.data());
    const auto result = QuantizeRow(table(), x.data(), n, got.data());
    EXPECT_EQ(result.scale, expected.scale);
    EXPECT_EQ(result.sum, expected.sum);
    EXPECT_EQ(got, want);
  }
}

GODWIT_FOR_EVERY_ISA(QuantizeRowTest);

TEST_P(QuantizeRowTest, NibblesTellNormalNumbersApart) {
  for (const int64_t n : {16, 64, 128, 1000}) {
    for (const float deviation : {1e-30f, 1.0f, 1e18f}) {
      const std::vector<float> x = Normal(n, deviation);
      std::vector<uint8_t> codes(x.size());
      const float scale = QuantizeToNibbles(table(), x.data(), n, codes.data());
      double error = 0, all = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_LT(codes[i], 16);
        const double off = double{x[i]} - double{scale} * kernels::kNibbleLevels[codes[i]];
        error += off * off;
        all += double{x[i]} * x[i];
      }
      // The error of endless rows is 0.0975 deviations (Max 1960).
      EXPECT_LT(std::sqrt(error / all), 0.125) << n << " numbers of " << deviation;
    }
  }
}

TEST_P(QuantizeRowTest, NibblesOfANumberAndItsNegativeAreOpposite) {
  std::vector<float> x = Normal(77, 1);
  std::vector<uint8_t> codes(x.size()), opposite(x.size());
  const float scale = QuantizeToNibbles(table(), x.data(), 77, codes.data());
  for (float& number : x) number = -number;
  EXPECT_EQ(QuantizeToNibbles(table(), x.data(), 77, opposite.data()), scale);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(codes[i] + opposite[i], 15);
}

TEST_P(QuantizeRowTest, NibblesOfZerosAndOfWhatIsNotFinite) {
  std::vector<uint8_t> codes(3, 99);
  const std::vector<float> zeros(3, 0.0f);
  EXPECT_EQ(QuantizeToNibbles(table(), zeros.data(), 3, codes.data()), 0.0f);
  for (const float bad : {kNan, kernels::kInfinity}) {
    const std::vector<float> row = {1, bad, 2};
    EXPECT_TRUE(std::isnan(QuantizeToNibbles(table(), row.data(), 3, codes.data())));
    for (const uint8_t code : codes) EXPECT_LT(code, 16);
  }
}

}  // namespace
}  // namespace godwit::ops::quantize_test
