#include "ops/outliers.h"

#include "ops/linear.h"
#include "ops/test_support.h"

namespace godwit::ops::outliers_test {
namespace {

class OutliersTest : public OpsTest {
 protected:
  struct Row {
    RowQuantization rest;
    std::vector<int> integers;  // [n], padded
    std::vector<Outlier> outliers;
  };

  Row Quantize(const std::vector<float>& x, float threshold) const {
    std::vector<int8_t> out((x.size() + kernels::kQuad - 1) / kernels::kQuad * kernels::kQuad, 99);
    std::vector<Outlier> outliers(x.size());
    int64_t count = -1;
    const auto rest = QuantizeRowWithoutOutliers(table(), x.data(), threshold, std::ssize(x),
                                                 out.data(), outliers.data(), &count);
    outliers.resize(count);
    return {rest, {out.begin(), out.end()}, outliers};
  }

  GappedMatrix Product(ThreadPool& pool, MatrixView<const float> x, const Weight& weight) {
    GappedMatrix out(x.rows, weight.outputs);
    Linear(On(pool), x, weight, out.view());
    EXPECT_TRUE(out.GapsIntact());
    return out;
  }
};

Weight Int8Weight(ThreadPool& pool, int64_t outputs, int64_t inputs, float threshold) {
  Weight weight = RawWeight(DType::kF32, outputs, inputs, 1).PackAs(pool, DType::kI8);
  weight.bias = GappedMatrix(1, outputs, 2).Row(0);
  weight.input.outlier_threshold = threshold;
  return weight;
}

TEST_P(OutliersTest, TheOthersHaveTheirOwnScale) {
  const auto [rest, integers, outliers] = Quantize({1, -6, 0.5f, 3e38f, -2}, 6);
  EXPECT_EQ(integers, (std::vector<int>{64, 0, 32, 0, -127, 0, 0, 0}));
  EXPECT_EQ(rest.scale, 2.0f / 127);
  EXPECT_EQ(rest.sum, 64 + 32 - 127);
  ASSERT_EQ(outliers.size(), 2u);
  EXPECT_EQ(outliers[0].column, 1);
  EXPECT_EQ(outliers[0].value, -6);
  EXPECT_EQ(outliers[1].column, 3);
  EXPECT_EQ(outliers[1].value, 3e38f);
}

TEST_P(OutliersTest, NothingMayBeLeft) {
  const auto [rest, integers, outliers] = Quantize({7, -8}, 6);
  EXPECT_EQ(integers, std::vector<int>(4, 0));
  EXPECT_EQ(rest.scale, 0);
  EXPECT_EQ(rest.sum, 0);
  EXPECT_EQ(outliers.size(), 2u);
}

TEST_P(OutliersTest, InfinityIsNone) {
  for (const float bad : {kNan, kernels::kInfinity}) {
    const auto [rest, integers, outliers] = Quantize({1, 7, bad}, 6);
    EXPECT_TRUE(std::isnan(rest.scale));
    EXPECT_TRUE(outliers.empty());
  }
}

// 10 * 1.5 + 1 * -1 + 1. In int8, 127 for 10 leaves 13 for 1.
TEST_P(OutliersTest, AreMultipliedWithTheDequantizedWeight) {
  const int8_t integers[] = {3, -2};
  Weight weight = PackWeight(one_, DType::kI8, 1, 2,
                             [&](int64_t) -> const void* { return integers; }, DType::kI8, {0.5f});
  weight.bias = {1};
  GappedMatrix x(1, 2);
  x.view().Row(0)[0] = 10;
  x.view().Row(0)[1] = 1;
  weight.input.outlier_threshold = 6;
  EXPECT_FLOAT_EQ(Product(one_, x.view(), weight).At(0, 0), 15 - 1 + 1);
  weight.input.outlier_threshold = 0;
  EXPECT_FLOAT_EQ(Product(one_, x.view(), weight).At(0, 0),
                  10.0f / 127 * (127 * 1.5f - 13 * 1.0f) + 1);
}

TEST_P(OutliersTest, ARowWithoutThemIsThePlainProduct) {
  const GappedMatrix x(5, 67, 3);  // below 1
  EXPECT_EQ(Product(three_, x.view(), Int8Weight(one_, 130, 67, 1)).Values(),
            Product(three_, x.view(), Int8Weight(one_, 130, 67, 0)).Values());
}

// Only the weights are rounded.
TEST_P(OutliersTest, ARowOfNothingElseIsAFloatProduct) {
  const GappedMatrix x(3, 67, 4, /*low=*/6, /*high=*/60);
  const Weight weight = Int8Weight(one_, 130, 67, 6);
  const GappedMatrix out = Product(three_, x.view(), weight);
  std::vector<float> row(67);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 130; ++j) {
      UnpackRow(weight, j, row.data());
      double want = weight.bias[j], size = std::fabs(want);
      for (int64_t k = 0; k < 67; ++k) {
        const double product = double{x.At(i, k)} * row[k];
        want += product;
        size += std::fabs(product);
      }
      ASSERT_NEAR(out.At(i, j), want, 70 * kEpsilon * size);
    }
  }
}

TEST_P(OutliersTest, ARowDoesNotDependOnItsCompany) {
  const GappedMatrix x(97, 65, 5);
  const Weight weight = Int8Weight(one_, 1100, 65, 0.97f);
  const GappedMatrix all = Product(one_, x.view(), weight);
  EXPECT_NE(all.Values(), Product(one_, x.view(), Int8Weight(one_, 1100, 65, 0)).Values());
  EXPECT_EQ(all.Values(), Product(three_, x.view(), weight).Values());
  for (int64_t row = 0; row < 97; ++row) {
    ASSERT_EQ(Product(three_, x.view().Rows(row, row + 1), weight).Row(0), all.Row(row));
  }
}

GODWIT_FOR_EVERY_ISA(OutliersTest);

}  // namespace
}  // namespace godwit::ops::outliers_test
