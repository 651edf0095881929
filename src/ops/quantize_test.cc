#include "ops/quantize.h"

#include "ops/test_support.h"

namespace godwit::ops::quantize_test {
namespace {

class QuantizeRowTest : public OpsTest {
 protected:
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

TEST_P(QuantizeRowTest, WhatIsNotFiniteMakesTheScaleNan) {
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

}  // namespace
}  // namespace godwit::ops::quantize_test
