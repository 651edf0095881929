#include "quant/input_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "quant/quant_test_support.h"

namespace godwit::quant::input_products_test {
namespace {

TEST(InputProducts, RELEASE_AreSumsOverAllRows) {
  for (const int64_t inputs : {1, 7, 300}) {
    for (const int64_t rows : {1, 255, 256, 600}) {
      std::mt19937 random(static_cast<uint32_t>(rows));
      std::normal_distribution<float> normal;
      const TestExec exec(2), other(3);
      InputProducts products, again;
      std::vector<double> want(inputs * inputs);
      std::vector<float> row(inputs);
      for (int64_t r = 0; r < rows; ++r) {
        for (float& x : row) x = normal(random);
        products.Add(*exec, row);
        again.Add(*other, row);
        for (size_t i = 0; i < row.size(); ++i) {
          for (size_t j = 0; j < row.size(); ++j)
            want[i * row.size() + j] += double{row[i]} * row[j];
        }
      }
      const std::vector<float> got = products.Take(*exec);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], want[i], 1e-5 * static_cast<double>(rows)) << inputs << ", " << rows;
      }
      EXPECT_EQ(again.Take(*other), got) << "depends on the threads";
    }
  }
}

TEST(InputProducts, NoRowsGiveNone) { EXPECT_TRUE(InputProducts().Take(*TestExec(1)).empty()); }

}  // namespace
}  // namespace godwit::quant::input_products_test
