#include "ops/linear.h"

#include <numeric>

#include "base/error.h"
#include "ops/quantize_asymmetric.h"
#include "ops/test_support.h"

namespace godwit::ops::linear_test {
namespace {

struct Shape {
  int64_t rows, k, outputs;
};

// Shapes around the panels, row blocks, register tiles and pairs of every kernel.
constexpr Shape kShapes[] = {{1, 1, 1},     {1, 3, 63},   {2, 64, 64},   {3, 129, 1100},
                             {7, 65, 65},   {8, 31, 130}, {9, 257, 200}, {95, 33, 66},
                             {96, 16, 64},  {97, 5, 129}, {200, 7, 3},   {1, 300, 1100},
                             {193, 2, 128}, {1, 0, 5}};

std::string Text(DType dtype, const Shape& shape) {
  return fmt::format("{} {} x {} x {}", Name(dtype), shape.rows, shape.k, shape.outputs);
}

class LinearTest : public OpsTest {
 protected:
  // Expects out = x * w^T + bias in double; bf16 weights meet activations rounded to bf16.
  static void ExpectProduct(DType dtype, const GappedMatrix& x, const RawWeight& raw,
                            const std::vector<float>& bias, const GappedMatrix& out) {
    for (int64_t i = 0; i < x.view().rows; ++i) {
      for (int64_t j = 0; j < out.view().cols; ++j) {
        double sum = bias.empty() ? 0 : bias[j];
        double magnitude = std::fabs(sum);
        for (int64_t k = 0; k < x.view().cols; ++k) {
          const float a = x.At(i, k);
          const double rounded = dtype == DType::kBF16 ? ToFloat(ToBF16(a)) : a;
          const double product = rounded * raw.At(j, k);
          sum += product;
          magnitude += std::fabs(product);
        }
        // Each product and each addition rounds once, relative to a partial sum.
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
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kI8, DType::kGrouped}) {
    for (const Shape& shape : {Shape{200, 65, 130}, Shape{97, 300, 1100}}) {
      SCOPED_TRACE(Text(dtype, shape));
      const GappedMatrix x(shape.rows, shape.k, 4);
      const bool quantized = dtype == DType::kI8 || dtype == DType::kGrouped;
      const DType stored = quantized ? DType::kF32 : dtype;
      Weight weight = RawWeight(stored, shape.outputs, shape.k, 5).PackAs(one_, dtype);
      weight.bias = GappedMatrix(1, shape.outputs, 6).Row(0);
      GappedMatrix all(shape.rows, shape.outputs);
      Linear(On(one_), x.view(), weight, all.view());
      GappedMatrix threaded(shape.rows, shape.outputs);
      Linear(On(three_), x.view(), weight, threaded.view());
      GappedMatrix first(shape.rows, kernels::kPanelColumns);  // of the outputs
      Linear(On(three_), x.view(), weight, first.view());
      EXPECT_TRUE(first.GapsIntact());
      for (int64_t row = 0; row < shape.rows; ++row) {
        EXPECT_TRUE(std::ranges::equal(first.view().RowSpan(row),
                                       all.view().RowSpan(row).first(kernels::kPanelColumns)));
      }
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

// Rows are cut into smaller blocks for many threads, with and without the blocks of product_bytes.
TEST_P(LinearTest, FarMoreThreadsThanCoresGetTheSameBits) {
  ThreadPool many(64);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI8, DType::kGrouped}) {
    for (const Shape& shape : {Shape{32, 64, 200}, Shape{95, 64, 1100}, Shape{300, 64, 1100}}) {
      SCOPED_TRACE(Text(dtype, shape));
      const GappedMatrix x(shape.rows, shape.k, 7);
      const bool quantized = dtype == DType::kI8 || dtype == DType::kGrouped;
      const DType stored = quantized ? DType::kF32 : dtype;
      const Weight weight = RawWeight(stored, shape.outputs, shape.k, 8).PackAs(one_, dtype);
      GappedMatrix alone(shape.rows, shape.outputs);
      Linear(On(one_), x.view(), weight, alone.view());
      for (const int64_t product_bytes : {0, 1 << 15}) {
        kernels::KernelTable kernels = On(one_).kernels;
        kernels.product_bytes = product_bytes;
        GappedMatrix out(shape.rows, shape.outputs);
        Linear({.pool = many, .kernels = kernels, .workspace = workspace_}, x.view(), weight,
               out.view());
        ASSERT_EQ(out.Values(), alone.Values()) << product_bytes;
        EXPECT_TRUE(out.GapsIntact());
      }
    }
  }
}

// The product as kernel_table.h defines it, from the integers of weights and rows.
std::vector<float> Int8Product(const kernels::KernelTable& scalar, const GappedMatrix& x,
                               const Weight& w) {
  std::vector<float> out;
  std::vector<int8_t> a(w.inputs + kernels::kQuad);
  std::vector<float> row(w.inputs);
  float scale = w.input.scale;
  if (w.input.kind == InputScale::kPerTensor) {
    for (const float value : x.Values()) scale = std::max(scale, std::fabs(value) / 127);
  }
  const float threshold = w.input.outlier_threshold;
  const auto is_outlier = [&](float value) {
    return threshold > 0 && std::fabs(value) >= threshold;
  };
  for (int64_t i = 0; i < x.view().rows; ++i) {
    std::vector<float> rest = x.Row(i);
    std::ranges::replace_if(rest, is_outlier, 0.0f);
    const RowQuantization quantized =
        w.input.kind == InputScale::kPerToken
            ? QuantizeRow(scalar, rest.data(), w.inputs, a.data())
            : QuantizeRowWithScale(scalar, rest.data(), scale, w.inputs, a.data());
    const bool has_outliers = std::ranges::any_of(x.Row(i), is_outlier);
    for (int64_t j = 0; j < w.outputs; ++j) {
      const auto output = static_cast<size_t>(j);
      UnpackRow(w, j, row.data());
      int32_t dot = 0;
      float in_float = 0;
      for (size_t k = 0; k < row.size(); ++k) {
        const float value = x.At(i, static_cast<int64_t>(k));
        if (is_outlier(value)) in_float += value * row[k];
        dot += a[k] * static_cast<int32_t>(std::lround(row[k] / w.scales[output]));
      }
      float sum = static_cast<float>(dot) * w.scales[output] * quantized.scale;
      if (!w.bias.empty()) sum += w.bias[output];
      out.push_back(has_outliers ? sum + in_float : sum);
    }
  }
  return out;
}

// Several products at once, of any storage and number of rows, are each as if alone.
TEST_P(LinearTest, SeveralAtOnceAreEachAlone) {
  struct Alone {
    Weight weight;
    LinearRows rows;
    GappedMatrix out, together;
  };
  std::vector<Alone> all;
  const Exec exec = On(three_);
  const Workspace::Scope scope(exec.workspace);
  for (const DType dtype : {DType::kGrouped, DType::kF32, DType::kI8, DType::kBF16, DType::kF16}) {
    for (const Shape& shape : {Shape{1, 65, 130}, Shape{0, 65, 40}, Shape{100, 32, 300}}) {
      const bool quantized = dtype == DType::kI8 || dtype == DType::kGrouped;
      const RawWeight raw(quantized ? DType::kF32 : dtype, shape.outputs, shape.k, 5);
      const GappedMatrix x(shape.rows, shape.k, 6);
      Alone& one = all.emplace_back(Alone{.weight = raw.PackAs(one_, dtype),
                                          .rows = {},
                                          .out = GappedMatrix(shape.rows, shape.outputs),
                                          .together = GappedMatrix(shape.rows, shape.outputs)});
      one.weight.bias = GappedMatrix(1, shape.outputs, 7).Row(0);
      Linear(exec, x.view(), one.weight, one.out.view());
    }
  }
  std::vector<Product> products;
  for (size_t i = 0; i < all.size(); ++i) {
    Alone& one = all[i];
    const GappedMatrix x(one.out.view().rows, one.weight.inputs, 6);
    one.rows = NewLinearRows(exec, one.weight, x.view().rows);
    SetRows(exec, x.view(), one.rows);
    products.push_back({&one.rows, &one.weight, one.together.view()});
  }
  Linear(exec, products);
  for (const Alone& one : all) {
    EXPECT_EQ(one.together.Values(), one.out.Values()) << Name(one.weight.dtype);
    EXPECT_TRUE(one.together.GapsIntact());
  }
}

TEST_P(LinearTest, Int8IsItsDefinitionToTheBit) {
  for (const Shape& shape : kShapes) {
    for (const InputQuantization& input : kInputs) {
      if (!input.symmetric) continue;
      SCOPED_TRACE(Text(DType::kI8, shape));
      GappedMatrix x(shape.rows, shape.k, 12);
      if (shape.rows > 2) std::ranges::fill(x.view().RowSpan(1), 0.0f);
      Weight weight = RawWeight(DType::kF32, shape.outputs, shape.k, 13).PackAs(three_, DType::kI8);
      weight.input = input;
      if (shape.rows % 2 == 0) weight.bias = GappedMatrix(1, shape.outputs, 14).Row(0);
      GappedMatrix out(shape.rows, shape.outputs);
      Linear(On(three_), x.view(), weight, out.view());
      ASSERT_EQ(out.Values(), Int8Product(*kernels::AllIsas().back().table, x, weight));
      EXPECT_TRUE(out.GapsIntact());
    }
  }
}

// x is about scale * (integer - zero point): the integers' product and the row sums give the
// output.
TEST_P(LinearTest, Int8OfAnAsymmetricInput) {
  for (const InputScale kind : {InputScale::kPerToken, InputScale::kPerTensor}) {
    for (const Shape& shape : kShapes) {
      SCOPED_TRACE(Text(DType::kI8, shape));
      const GappedMatrix x(shape.rows, shape.k, 12, /*low=*/-0.2f, /*high=*/1.5f);
      Weight weight = RawWeight(DType::kF32, shape.outputs, shape.k, 13).PackAs(three_, DType::kI8);
      weight.input = {.kind = kind, .symmetric = false};
      weight.bias = GappedMatrix(1, shape.outputs, 14).Row(0);
      std::vector<float> row(shape.k);
      for (int64_t j = 0; j < shape.outputs; ++j) {
        UnpackRow(weight, j, row.data());
        weight.row_sums.push_back(std::accumulate(row.begin(), row.end(), 0.0f));
      }
      GappedMatrix out(shape.rows, shape.outputs);
      Linear(On(three_), x.view(), weight, out.view());
      EXPECT_TRUE(out.GapsIntact());

      ValueRange all;
      for (int64_t i = 0; i < shape.rows; ++i) all = Join(all, RangeOf(x.view().Row(i), shape.k));
      std::vector<int8_t> a(shape.k + kernels::kQuad);
      for (int64_t i = 0; i < shape.rows; ++i) {
        const AsymmetricScale scale = AsymmetricScaleOf(
            kind == InputScale::kPerToken ? RangeOf(x.view().Row(i), shape.k) : all);
        QuantizeRowAsymmetric(x.view().Row(i), scale, shape.k, a.data());
        for (int64_t j = 0; j < shape.outputs; ++j) {
          UnpackRow(weight, j, row.data());
          double want = weight.bias[j];
          double size = std::fabs(want);
          for (size_t k = 0; k < row.size(); ++k) {
            want += double{scale.scale} * (a[k] - scale.zero_point) * row[k];
            size += std::fabs(scale.scale * a[k] * row[k]) +
                    std::fabs(scale.scale * static_cast<float>(scale.zero_point) * row[k]);
          }
          ASSERT_NEAR(out.At(i, j), want, 16 * kEpsilon * size);
        }
      }
    }
  }
}

// Each factor is off by half its scale at most.
TEST_P(LinearTest, Int8IsCloseToFloat) {
  for (const DType dtype : kFloatTypes) {
    const GappedMatrix x(9, 300, 15);
    const RawWeight raw(dtype, 70, 300, 16);
    const Weight weight = raw.PackAs(three_, DType::kI8);
    GappedMatrix out(9, 70);
    Linear(On(three_), x.view(), weight, out.view());
    for (int64_t i = 0; i < 9; ++i) {
      const double a_step = table().largest_magnitude(x.view().Row(i), 300) / 127;
      for (int64_t j = 0; j < 70; ++j) {
        const double w_step = weight.scales[j];
        double sum = 0, bound = 1e-4;
        for (int64_t k = 0; k < 300; ++k) {
          sum += double{x.At(i, k)} * raw.At(j, k);
          bound += (std::fabs(x.At(i, k)) * w_step + std::fabs(raw.At(j, k)) * a_step) / 2 +
                   a_step * w_step / 4;
        }
        ASSERT_NEAR(out.At(i, j), sum, bound);
      }
    }
  }
}

TEST_P(LinearTest, Int8RefusesRowsThatAreNotFinite) {
  Weight weight = RawWeight(DType::kBF16, 65, 33, 17).PackAs(one_, DType::kI8);
  weight.name = "model.layers.3.mlp.down_proj";
  for (const float bad : {kNan, kernels::kInfinity}) {
    for (const InputQuantization& input : kInputs) {
      weight.input = input;
      GappedMatrix x(5, 33, 18);
      x.view().Row(3)[32] = bad;
      GappedMatrix out(5, 65);
      try {
        Linear(On(three_), x.view(), weight, out.view());
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
        EXPECT_NE(std::string(error.what()).find("model.layers.3.mlp.down_proj"),
                  std::string::npos);
        EXPECT_NE(std::string(error.what()).find("row 3"), std::string::npos) << error.what();
      }
    }
  }
}

TEST_P(LinearTest, FiltersCopiesOfFloatRows) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    Weight weight = RawWeight(dtype, 70, 33, 21).Pack(one_);
    weight.name = "up_proj";
    const GappedMatrix x(5, 33, 22), before(5, 33, 22);
    GappedMatrix doubled(5, 33, 22);
    for (int64_t i = 0; i < 5; ++i) {
      for (float& value : doubled.view().RowSpan(i)) value *= 2;
    }
    const LinearFilter filter = [](const Weight& w, MatrixView<float> rows) {
      EXPECT_EQ(w.name, "up_proj");
      for (int64_t i = 0; i < rows.rows; ++i) {
        for (float& value : rows.RowSpan(i)) value *= 2;
      }
    };
    Exec exec = On(three_);
    GappedMatrix expected(5, 70), out(5, 70);
    Linear(exec, doubled.view(), weight, expected.view());
    exec.filter = &filter;
    Linear(exec, x.view(), weight, out.view());
    for (int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(out.Row(i), expected.Row(i));
      EXPECT_EQ(x.Row(i), before.Row(i)) << "the caller's rows stay";
    }
  }
}

TEST_P(LinearTest, NoRowsAreNoWork) {
  const Weight weight = RawWeight(DType::kBF16, 3, 5, 7).Pack(one_);
  GappedMatrix x(0, 5), out(0, 3);
  Linear(On(one_), x.view(), weight, out.view());
}

TEST_P(LinearTest, RefusesStorageItHasNoKernelFor) {
  const Weight weight{.dtype = DType::kI64, .outputs = 1, .inputs = 1, .panels = Buffer(64)};
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

}  // namespace
}  // namespace godwit::ops::linear_test
