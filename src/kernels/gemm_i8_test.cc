// The int8 product is exact and its scaling is defined to the bit, so no test here has a tolerance.
#include <algorithm>
#include <cmath>

#include "kernels/kernel_test_support.h"
#include "kernels/packing.h"

namespace godwit::kernels::gemm_i8_test {
namespace {

int64_t WholeQuads(int64_t k) { return (k + kQuad - 1) / kQuad * kQuad; }

// A random product of numbers in [-128, 127], with both extremes among them.
struct Problem {
  Problem(int64_t n_rows, int64_t depth, int64_t n_columns, uint32_t seed, int64_t offset = 0)
      : rows(n_rows),
        k(depth),
        columns(n_columns),
        a_stride(WholeQuads(depth) + kQuad * (seed % 3)),
        out_stride(n_columns + seed % 4),
        a(n_rows * a_stride, offset),
        w(static_cast<size_t>(n_columns * depth)),
        packed(PanelCount(n_columns) * PanelBytes(DType::kI8, depth)),
        a_scales(n_rows, offset),
        a_sums(n_rows, offset),
        w_scales(n_columns, offset),
        bias(n_columns, offset) {
    RandomFloats random(seed);
    for (int8_t& x : w) x = static_cast<int8_t>(random.Extreme(-128, 127));
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < k; ++i) SetA(r, i, random.Extreme(-128, 127));
      std::fill_n(&a[r * a_stride] + k, WholeQuads(k) - k, int8_t{0});
    }
    random.Fill(a_scales, 1e-4f, 1e-2f);
    random.Fill(w_scales, 1e-4f, 1e-2f);
    random.Fill(bias);
    Finish();
  }

  void SetA(int64_t row, int64_t i, int64_t value) {
    a[row * a_stride + i] = static_cast<int8_t>(value);
  }

  // Computes the sums again after changes of a or w.
  void Finish() {
    for (int64_t r = 0; r < rows; ++r) {
      a_sums[r] = 0;
      for (int64_t i = 0; i < k; ++i) a_sums[r] += a[r * a_stride + i];
    }
    for (int64_t p = 0; p < PanelCount(columns); ++p) {
      const void* panel_rows[kPanelColumns] = {};
      for (int64_t c = 0; c < std::min(kPanelColumns, columns - p * kPanelColumns); ++c) {
        panel_rows[c] = w.data() + (p * kPanelColumns + c) * k;
      }
      PackPanel(DType::kI8, panel_rows, k, packed.data() + p * PanelBytes(DType::kI8, k));
    }
  }

  GemmArgs Args(float* out) const {
    return {.a = a.data(),
            .a_stride = a_stride,
            .w = packed.data(),
            .bias = bias.data(),
            .out = out,
            .out_stride = out_stride,
            .rows = rows,
            .k = k,
            .columns = columns,
            .panel_begin = 0,
            .panel_end = PanelCount(columns),
            .a_scales = a_scales.data(),
            .a_sums = a_sums.data(),
            .w_scales = w_scales.data()};
  }

  Guarded<float> Run(const KernelTable& table, bool with_bias = true, int64_t offset = 0) const {
    Guarded<float> out(rows * out_stride, offset);
    GemmArgs args = Args(out.data());
    if (!with_bias) args.bias = nullptr;
    table.gemm_i8(args);
    return out;
  }

  // The element by definition, from the unpacked weight.
  float Want(int64_t row, int64_t column, bool with_bias) const {
    int64_t dot = 0;
    for (int64_t i = 0; i < k; ++i) dot += int64_t{a[row * a_stride + i]} * w[column * k + i];
    const float weighed = static_cast<float>(static_cast<int32_t>(dot)) * w_scales[column];
    const float x = weighed * a_scales[row];
    return with_bias ? x + bias[column] : x;
  }

  int64_t rows, k, columns, a_stride, out_stride;
  Guarded<int8_t> a;
  std::vector<int8_t> w;
  Guarded<uint8_t> packed;
  Guarded<float> a_scales;
  Guarded<int32_t> a_sums;
  Guarded<float> w_scales, bias;
};

class GemmI8Test : public IsaTest {
 protected:
  void ExpectExact(const Problem& problem, bool with_bias, int64_t offset) {
    const Guarded<float> got = problem.Run(table(), with_bias, offset);
    EXPECT_TRUE(got.GuardsIntact());
    for (int64_t r = 0; r < problem.rows; ++r) {
      for (int64_t c = 0; c < problem.out_stride; ++c) {
        const uint32_t bits = Bits(got[r * problem.out_stride + c]);
        if (c >= problem.columns) {
          ASSERT_EQ(bits, 0xffffffffu) << "written past the row";
          continue;
        }
        ASSERT_EQ(bits, Bits(problem.Want(r, c, with_bias)))
            << problem.rows << " x " << problem.k << " x " << problem.columns << " at " << r << ", "
            << c;
      }
    }
  }
};
GODWIT_FOR_EVERY_ISA(GemmI8Test);

TEST_P(GemmI8Test, IsExactAtEveryShape) {
  for (const int64_t rows : {0, 1, 2, 5, 6, 7, 13}) {
    for (const int64_t k : {0, 1, 2, 3, 4, 5, 7, 16, 33, 63, 65, 100}) {
      for (const int64_t columns : {1, 15, 16, 17, 63, 64, 65, 100, 192}) {
        const uint32_t seed = rows * 10007 + k * 101 + columns;
        const int64_t offset = seed % 5;
        const Problem problem(rows, k, columns, seed, offset);
        ExpectExact(problem, /*with_bias=*/seed % 2 == 0, offset);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Outputs of more than a mebibyte, which some instruction sets write past the caches where whole
// vectors are aligned. Seed 4 aligns them, seed 5 does not.
TEST_P(GemmI8Test, IsExactForManyRowsAndColumns) {
  for (const uint32_t seed : {4, 5}) {
    ExpectExact(Problem(300, 132, 944, seed), /*with_bias=*/seed == 4, 0);
  }
}

// Rows and depths around AMX's tile registers: 16 rows, 64 elements.
TEST_P(GemmI8Test, IsExactAtEveryShapeOfTiles) {
  for (const int64_t rows : {8, 15, 16, 17, 31, 32, 33, 49, 95, 96, 97, 130}) {
    for (const int64_t k : {4, 60, 64, 68, 127, 128, 130, 255, 256, 260, 576}) {
      for (const int64_t columns : {16, 65, 128}) {
        const uint32_t seed = rows * 10007 + k * 101 + columns;
        const int64_t offset = seed % 5;
        const Problem problem(rows, k, columns, seed, offset);
        ExpectExact(problem, /*with_bias=*/seed % 2 == 0, offset);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// More quads than one pass over the rows takes.
TEST_P(GemmI8Test, IsExactOverSeveralPasses) {
  for (const int64_t k : {1023, 1024, 1025, 3001}) {
    for (const int64_t rows : {1, 7, 20})
      ExpectExact(Problem(rows, k, 70, 3), /*with_bias=*/true, 0);
  }
}

TEST_P(GemmI8Test, RELEASE_RowsDoNotDependOnTheBatch) {
  const Problem problem(39, 1300, 130, 5);
  const Guarded<float> all = problem.Run(table());
  for (int64_t rows = 1; rows <= problem.rows; ++rows) {
    for (int64_t begin = 0; begin + rows <= problem.rows; begin += 6) {
      Guarded<float> some(rows * problem.out_stride);
      GemmArgs args = problem.Args(some.data());
      args.a = problem.a.data() + begin * problem.a_stride;
      args.a_scales += begin;
      args.a_sums += begin;
      args.rows = rows;
      table().gemm_i8(args);
      EXPECT_EQ(std::memcmp(some.data(), &all[begin * problem.out_stride],
                            rows * problem.out_stride * sizeof(float)),
                0);
    }
  }
}

TEST_P(GemmI8Test, PanelsDoNotDependOnTheRange) {
  const Problem problem(7, 90, 64 * 3 + 9, 6);
  const Guarded<float> whole = problem.Run(table());
  for (int64_t begin = 0; begin < 4; ++begin) {
    for (int64_t end = begin; end <= 4; ++end) {
      Guarded<float> part(problem.rows * problem.out_stride);
      GemmArgs args = problem.Args(part.data());
      args.panel_begin = begin;
      args.panel_end = end;
      table().gemm_i8(args);
      for (int64_t i = 0; i < part.size(); ++i) {
        const int64_t panel = i % problem.out_stride / kPanelColumns;
        const bool computed = panel >= begin && panel < end;
        ASSERT_EQ(Bits(part[i]), computed ? Bits(whole[i]) : 0xffffffffu);
      }
    }
  }
}

// Extremes for which a product of neighbours, or the sum of unsigned weights, would leave its type.
TEST_P(GemmI8Test, ExtremesDoNotSaturate) {
  for (const int64_t weight : {-128, -127, 127}) {
    for (const int64_t activation : {-128, 127}) {
      Problem problem(7, 260, 65, 7);
      for (int8_t& x : problem.w) x = static_cast<int8_t>(weight);
      for (int64_t r = 0; r < problem.rows; ++r) {
        for (int64_t i = 0; i < problem.k; ++i) problem.SetA(r, i, activation);
      }
      problem.Finish();
      ExpectExact(problem, /*with_bias=*/false, 0);
    }
  }
}

// The largest possible dot product: 2^31 - 2^16. With unsigned weights the sums wrap on the way.
TEST_P(GemmI8Test, TheDeepestProductDoesNotOverflow) {
  for (const int64_t weight : {-128, 127}) {
    Problem problem(2, kMaxDepthI8, 3, 8);
    for (int8_t& x : problem.w) x = static_cast<int8_t>(weight);
    for (int64_t i = 0; i < problem.k; ++i) {
      problem.SetA(0, i, -128);
      problem.SetA(1, i, 127);
    }
    problem.Finish();
    ExpectExact(problem, /*with_bias=*/true, 0);
  }
}

// Small numbers times large ones, in the order that the contract gives.
TEST_P(GemmI8Test, ScalesOfAnySize) {
  Problem problem(4, 40, 70, 9);
  problem.a_scales[0] = 0;
  problem.a_scales[1] = 2.6e36f;
  problem.a_scales[2] = 1e-38f;
  for (int64_t c = 0; c < problem.columns; ++c) problem.w_scales[c] = c % 2 == 0 ? 1e-30f : 1e6f;
  problem.w_scales[5] = 0;
  ExpectExact(problem, /*with_bias=*/true, 0);
}

TEST_P(GemmI8Test, ReadsNothingBeyondItsInputs) {
  for (const int64_t rows : {7, 17}) {
    for (const int64_t columns : {1, 63, 64, 65}) {
      for (const int64_t k : {1, 4, 33, 66}) {
        const Problem problem(rows, k, columns, 10);
        // Memory outside is 0xff: NaN in the scales, -1 in the rows.
        for (const bool with_bias : {false, true}) ExpectExact(problem, with_bias, 0);
      }
    }
  }
}

}  // namespace
}  // namespace godwit::kernels::gemm_i8_test
