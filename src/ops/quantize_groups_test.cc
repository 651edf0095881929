#include "ops/quantize_groups.h"

#include "base/error.h"
#include "ops/linear.h"
#include "ops/test_support.h"

namespace godwit::ops::quantize_groups_test {
namespace {

using kernels::GroupedRow;

struct Quantized {
  GroupedRow row;
  float factor = 0;
  float At(size_t i) const {
    return factor * row.scales[i / 32] * static_cast<float>(row.codes[i] - 8);
  }
};

Quantized Quantize(const std::vector<float>& x) {
  Quantized result{.row = kernels::NewGroupedRow(kQuantizedGroups, std::ssize(x))};
  QuantizeGroups(x.data(), result.row, result.factor);
  return result;
}

// The sum of squared errors if the largest magnitude becomes the lowest code.
double PlainError(const float* x, size_t n) {
  const float largest =
      *std::max_element(x, x + n, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
  const float scale = largest / -8;
  double error = 0;
  for (size_t i = 0; i < n; ++i) {
    const float code = std::clamp(std::nearbyint(x[i] / scale), -8.0f, 7.0f);
    error += std::pow(double{x[i]} - double{scale} * code, 2);
  }
  return error;
}

TEST(QuantizeGroupsTest, IsNoWorseThanTheLargestMagnitudeMakesIt) {
  for (const size_t n : {32, 64, 33, 1, 100, 4096}) {
    const std::vector<float> x = GappedMatrix(1, static_cast<int64_t>(n), 21).Row(0);
    const Quantized quantized = Quantize(x);
    double error = 0, plain = 0, squares = 0;
    for (size_t i = 0; i < n; ++i) {
      error += std::pow(double{x[i]} - quantized.At(i), 2);
      squares += std::pow(double{x[i]}, 2);
    }
    for (size_t i = 0; i < n; i += 32) plain += PlainError(&x[i], std::min<size_t>(32, n - i));
    EXPECT_LE(error, plain * 1.001 + squares * 0x1p-22) << n;  // a scale is rounded to F16
    if (n >= 100) {
      EXPECT_LT(error, 0.95 * plain) << n;
    }
  }
}

// Multiples of a scale stay what they are.
TEST(QuantizeGroupsTest, IsExactOnItsOwnGrid) {
  std::vector<float> x(96);
  for (size_t i = 0; i < x.size(); ++i) {
    const float scale = i < 32 ? 0.25f : i < 64 ? -3e-5f : 1000;
    x[i] = ToFloat(ToF16(scale)) * static_cast<float>(static_cast<int>(i % 16) - 8);
  }
  const Quantized quantized = Quantize(x);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(quantized.At(i), x[i], 5e-4 * std::fabs(x[i])) << i;
  }
}

TEST(QuantizeGroupsTest, ScalesOfAnySizeFitIntoF16) {
  for (const float size : {1e-38f, 1e-30f, 1e-5f, 1.0f, 1e20f, 1e37f}) {
    std::vector<float> x(64, size);
    x[3] = -2 * size;
    std::fill(x.begin() + 32, x.end(), size / 100);
    const Quantized quantized = Quantize(x);
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(ToFloat(ToF16(quantized.row.scales[i / 32])), quantized.row.scales[i / 32]);
      if (size > 1e-37f) {
        EXPECT_NEAR(quantized.At(i) / x[i], 1, 0.15) << size << " " << i;
      }
    }
  }
}

TEST(QuantizeGroupsTest, ZerosAndWhatIsNotFinite) {
  const Quantized zeros = Quantize(std::vector<float>(40));
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(zeros.At(i), 0);
  for (const float bad : {kernels::kNan, kernels::kInfinity, -kernels::kInfinity}) {
    std::vector<float> x(40, 1.0f);
    x[35] = bad;
    EXPECT_TRUE(std::isnan(Quantize(x).At(0)));
  }
}

class GroupedLinearTest : public OpsTest {};
GODWIT_FOR_EVERY_ISA(GroupedLinearTest);

// Inputs are rounded to 1 / 254 of the largest of their block.
TEST_P(GroupedLinearTest, IsTheProductOfTheQuantizedWeights) {
  for (const auto& [rows, inputs, outputs] :
       {std::tuple{1, 64, 64}, {3, 100, 70}, {20, 300, 130}, {2, 1, 1}, {4, 0, 3}}) {
    const GappedMatrix x(rows, inputs, 1);
    const Weight w = RawWeight(DType::kF32, outputs, inputs, 2).PackAs(three_, DType::kGrouped);
    EXPECT_EQ(PackedBytes(DType::kGrouped, outputs, inputs),
              w.panels.bytes() + std::ssize(w.scales) * 4);
    GappedMatrix out(rows, outputs);
    Linear(On(three_), x.view(), w, out.view());
    EXPECT_TRUE(out.GapsIntact());
    std::vector<float> weights(inputs);
    for (int64_t j = 0; j < outputs; ++j) {
      UnpackRow(w, j, weights.data());
      for (int64_t i = 0; i < rows; ++i) {
        double sum = 0, error = 1e-30;
        for (int64_t k = 0; k < inputs; ++k) {
          const double weight = weights[k];
          sum += weight * x.At(i, k);
          error += std::fabs(weight) / 254;  // no input is beyond 1
        }
        ASSERT_NEAR(out.At(i, j), sum, 1.01 * error) << i << ", " << j;
      }
    }
  }
}

// Act order: inputs of rows in the order of the groups give the same product, to the bit.
TEST_P(GroupedLinearTest, TakesInputsInAnyOrder) {
  for (const int64_t inputs : {1, 40, 128, 333}) {
    const GappedMatrix x(9, inputs, 3);
    Weight w = RawWeight(DType::kF32, 70, inputs, 2).PackAs(one_, DType::kGrouped);
    GappedMatrix sorted(9, inputs);
    std::vector<float> plain(inputs), ordered(plain.size());
    UnpackRow(w, 69, plain.data());
    std::vector<int32_t> order(plain.size());
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = static_cast<int32_t>((i * 7 + 5) % order.size());  // 7 divides none of these
      for (int64_t row = 0; row < x.view().rows; ++row) {
        sorted.view().Row(row)[i] = x.At(row, order[i]);
      }
    }
    GappedMatrix want(9, 70), got(9, 70);
    Linear(On(one_), sorted.view(), w, want.view());
    w.input_order = order;
    Linear(On(three_), x.view(), w, got.view());
    EXPECT_EQ(got.Values(), want.Values()) << inputs;
    UnpackRow(w, 69, ordered.data());
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(ordered[order[i]], plain[i]);
  }
}

TEST_P(GroupedLinearTest, RefusesRowsThatAreNotFinite) {
  GappedMatrix x(3, 200, 1);
  x.view().Row(1)[170] = kernels::kInfinity;
  Weight w = RawWeight(DType::kF32, 5, 200, 2).PackAs(one_, DType::kGrouped);
  w.name = "layer.q";
  GappedMatrix out(3, 5);
  try {
    Linear(On(one_), x.view(), w, out.view());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "grouped linear layer layer.q [5, 200]: row 1 of its 3 input rows holds NaN or "
                 "infinity");
  }
}

}  // namespace
}  // namespace godwit::ops::quantize_groups_test
