#include "ops/linear.h"

#include "base/error.h"
#include "ops/test_support.h"

namespace godwit::ops {
namespace {

struct Shape {
  int64_t rows, k, outputs;
};

// Around the panels, row blocks, register tiles and pairs of every kernel.
constexpr Shape kShapes[] = {{1, 1, 1},     {1, 3, 63},   {2, 64, 64},   {3, 129, 1100},
                             {7, 65, 65},   {8, 31, 130}, {9, 257, 200}, {95, 33, 66},
                             {96, 16, 64},  {97, 5, 129}, {200, 7, 3},   {1, 300, 1100},
                             {193, 2, 128}, {1, 0, 5}};

std::string Text(DType dtype, const Shape& shape) {
  return fmt::format("{} {} x {} x {}", Name(dtype), shape.rows, shape.k, shape.outputs);
}

class LinearTest : public OpsTest {
 protected:
  // out = x * w^T + bias in double; bf16 weights meet activations rounded to bf16.
  static void ExpectProduct(DType dtype, const GappedMatrix& x, const RawWeight& raw,
                            const std::vector<float>& bias, const GappedMatrix& out) {
    for (int64_t i = 0; i < x.view().rows; ++i) {
      for (int64_t j = 0; j < out.view().cols; ++j) {
        double sum = bias.empty() ? 0 : bias[static_cast<size_t>(j)];
        double magnitude = std::fabs(sum);
        for (int64_t k = 0; k < x.view().cols; ++k) {
          const float a = x.At(i, k);
          const double rounded = dtype == DType::kBF16 ? ToFloat(ToBF16(a)) : a;
          const double product = rounded * raw.At(j, k);
          sum += product;
          magnitude += std::fabs(product);
        }
        // One rounding for each product and each addition, each relative to a partial sum.
        const double tolerance =
            static_cast<double>(x.view().cols + 2) * (kEpsilon * magnitude + kTiny);
        ASSERT_NEAR(out.At(i, j), sum, tolerance) << "row " << i << ", output " << j;
      }
    }
  }
};

TEST_P(LinearTest, MatchesADoubleProduct) {
  for (const DType dtype : kFloatTypes) {
    for (const Shape& shape : kShapes) {
      for (const bool with_bias : {false, true}) {
        SCOPED_TRACE(Text(dtype, shape));
        const GappedMatrix x(shape.rows, shape.k, 1);
        const RawWeight raw(dtype, shape.outputs, shape.k, 2);
        Weight weight = raw.Pack(three_);
        if (with_bias) weight.bias = GappedMatrix(1, shape.outputs, 3).Row(0);
        GappedMatrix out(shape.rows, shape.outputs);
        Linear(On(three_), x.view(), weight, out.view());
        ExpectProduct(dtype, x, raw, weight.bias, out);
        EXPECT_TRUE(out.GapsIntact());
      }
    }
  }
}

TEST_P(LinearTest, ARowDoesNotDependOnItsCompany) {
  for (const DType dtype : kFloatTypes) {
    for (const Shape& shape : {Shape{200, 65, 130}, Shape{97, 300, 1100}}) {
      SCOPED_TRACE(Text(dtype, shape));
      const GappedMatrix x(shape.rows, shape.k, 4);
      Weight weight = RawWeight(dtype, shape.outputs, shape.k, 5).Pack(one_);
      weight.bias = GappedMatrix(1, shape.outputs, 6).Row(0);
      GappedMatrix all(shape.rows, shape.outputs);
      Linear(On(one_), x.view(), weight, all.view());
      GappedMatrix threaded(shape.rows, shape.outputs);
      Linear(On(three_), x.view(), weight, threaded.view());
      ASSERT_EQ(threaded.Values(), all.Values());

      for (const int64_t rows : {1, 2, 7, 8, 64}) {
        for (int64_t begin = 0; begin + rows <= shape.rows; begin += 31) {
          GappedMatrix few(rows, shape.outputs);
          Linear(On(three_), x.view().Rows(begin, begin + rows), weight, few.view());
          for (int64_t i = 0; i < rows; ++i) {
            ASSERT_EQ(few.Row(i), all.Row(begin + i)) << "row " << begin + i << " among " << rows;
          }
        }
      }
    }
  }
}

TEST_P(LinearTest, NoRowsAreNoWork) {
  const Weight weight = RawWeight(DType::kBF16, 3, 5, 7).Pack(one_);
  GappedMatrix x(0, 5), out(0, 3);
  Linear(On(one_), x.view(), weight, out.view());
}

TEST_P(LinearTest, RefusesStorageItHasNoKernelFor) {
  const Weight weight{.dtype = DType::kI8, .outputs = 1, .inputs = 1, .panels = Buffer(64)};
  const GappedMatrix x(1, 1, 8);
  GappedMatrix out(1, 1);
  try {
    Linear(On(one_), x.view(), weight, out.view());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  }
}

TEST_P(LinearTest, StopsWhenCancelled) {
  const Weight weight = RawWeight(DType::kF32, 100, 5, 9).Pack(one_);
  const GappedMatrix x(4, 5, 10);
  GappedMatrix out(4, 100);
  CancelToken cancel;
  cancel.Cancel();
  try {
    Linear(On(three_, &cancel), x.view(), weight, out.view());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCancelled);
  }
}

GODWIT_FOR_EVERY_ISA(LinearTest);

TEST(UnpackRowTest, GivesBackWhatWasPacked) {
  ThreadPool pool(2);
  for (const DType dtype : kFloatTypes) {
    for (const int64_t outputs : {1, 63, 64, 65, 200}) {
      for (const int64_t inputs : {1, 2, 7, 64, 129}) {
        const RawWeight raw(dtype, outputs, inputs, 11);
        const Weight weight = raw.Pack(pool);
        EXPECT_TRUE(weight.bias.empty());
        std::vector<float> row(static_cast<size_t>(inputs) + 1, kNan);
        for (int64_t i = 0; i < outputs; ++i) {
          UnpackRow(weight, i, row.data());
          for (int64_t k = 0; k < inputs; ++k) {
            ASSERT_EQ(row[static_cast<size_t>(k)], raw.At(i, k)) << Name(dtype) << " row " << i;
          }
          ASSERT_TRUE(std::isnan(row.back()));
        }
      }
    }
  }
}

}  // namespace
}  // namespace godwit::ops
