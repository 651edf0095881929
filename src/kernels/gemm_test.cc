#include <cmath>

#include "kernels/kernel_test_support.h"
#include "kernels/packing.h"

namespace godwit::kernels::gemm_test {
namespace {

template <class Weight>
struct Product;
template <>
struct Product<float> {
  using Activation = float;
  static constexpr DType kDType = DType::kF32;
  static auto Kernel(const KernelTable& table) { return table.gemm_f32; }
};
template <>
struct Product<F16> {
  using Activation = float;
  static constexpr DType kDType = DType::kF16;
  static auto Kernel(const KernelTable& table) { return table.gemm_f16; }
};
template <>
struct Product<BF16> {
  using Activation = BF16;
  static constexpr DType kDType = DType::kBF16;
  static auto Kernel(const KernelTable& table) { return table.gemm_bf16; }
};

// One problem: rows by k, k by columns. Everything outside it is NaN.
template <class Weight>
struct Problem {
  using Activation = typename Product<Weight>::Activation;

  Problem(int64_t rows, int64_t k, int64_t columns, uint32_t seed, int64_t offset = 0)
      : rows(rows),
        k(k),
        columns(columns),
        a_stride(k + k % 2 + 3),
        out_stride(columns + 5),
        a(rows * a_stride, offset),
        w(columns * k),
        packed(PanelCount(columns) * PanelBytes(Product<Weight>::kDType, k) / sizeof(Weight)),
        bias(columns, offset) {
    RandomFloats random(seed);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < k + k % 2; ++i) {
        a[r * a_stride + i] = ToStorage<Activation>(i < k ? random() : 0);
      }
    }
    for (Weight& x : w) x = ToStorage<Weight>(random());
    random.Fill(bias);
    Pack();
  }

  void Pack() {
    const int64_t panel = PanelBytes(Product<Weight>::kDType, k) / int64_t{sizeof(Weight)};
    for (int64_t p = 0; p < PanelCount(columns); ++p) {
      const void* sources[kPanelColumns] = {};
      for (int64_t c = 0; c < kPanelColumns && p * kPanelColumns + c < columns; ++c) {
        sources[c] = w.data() + (p * kPanelColumns + c) * k;
      }
      PackPanel(Product<Weight>::kDType, sources, k, packed.data() + p * panel);
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
            .panel_end = PanelCount(columns)};
  }

  Guarded<float> Run(const KernelTable& table, bool with_bias = true, int64_t offset = 0) const {
    Guarded<float> out(rows * out_stride, offset);
    GemmArgs args = Args(out.data());
    if (!with_bias) args.bias = nullptr;
    Product<Weight>::Kernel(table)(args);
    return out;
  }

  // The sum of the magnitudes of an element's terms.
  double Magnitude(int64_t row, int64_t column) const {
    double sum = std::abs(bias[column]);
    for (int64_t i = 0; i < k; ++i) {
      sum += std::abs(FromStorage(a[row * a_stride + i]) * FromStorage(w[column * k + i]));
    }
    return sum;
  }

  int64_t rows, k, columns, a_stride, out_stride;
  Guarded<Activation> a;
  std::vector<Weight> w;
  Guarded<Weight> packed;
  Guarded<float> bias;
};

class GemmTest : public IsaTest {
 protected:
  // The bound of the error. One chain of k products and a bias is off by at most (k + 1) roundings,
  // each half an epsilon of the magnitudes. Two chains differ by twice that. VDPBF16PS flushes
  // subnormals.
  template <class Weight>
  void ExpectMatchesScalar(const Problem<Weight>& problem, bool with_bias, int64_t offset) {
    const Guarded<float> want = problem.Run(scalar(), with_bias);
    const Guarded<float> got = problem.Run(table(), with_bias, offset);
    EXPECT_TRUE(got.GuardsIntact());
    for (int64_t r = 0; r < problem.rows; ++r) {
      for (int64_t c = 0; c < problem.out_stride; ++c) {
        const int64_t i = r * problem.out_stride + c;
        if (c >= problem.columns) {
          ASSERT_EQ(Bits(got[i]), 0xffffffffu) << "written past the row";
          continue;
        }
        const double tolerance =
            (problem.k + 1) * (kEpsilon * problem.Magnitude(r, c) + double{kTiny});
        ASSERT_NEAR(got[i], want[i], tolerance) << problem.rows << " x " << problem.k << " x "
                                                << problem.columns << " at " << r << ", " << c;
      }
    }
  }

  template <class Weight>
  void TestMatchesScalar() {
    for (const int64_t rows : {0, 1, 2, 5, 6, 7, 13}) {
      for (const int64_t k : {0, 1, 2, 7, 16, 63, 65, 100}) {
        for (const int64_t columns : {1, 15, 16, 17, 63, 64, 65, 100, 192}) {
          const uint32_t seed = rows * 10007 + k * 101 + columns;
          const int64_t offset = seed % 5;
          const Problem<Weight> problem(rows, k, columns, seed, offset);
          ExpectMatchesScalar(problem, /*with_bias=*/seed % 2 == 0, offset);
          if (HasFatalFailure()) return;
        }
      }
    }
  }

  template <class Weight>
  void TestRowsDoNotDependOnTheBatch() {
    for (const int64_t k : {37, 1300}) {  // 1300 steps are more than one pass of the cache
      const int64_t columns = 130;
      const Problem<Weight> problem(110, k, columns, 5);
      Guarded<float> alone(problem.rows * problem.out_stride);
      for (int64_t r = 0; r < problem.rows; ++r) {
        GemmArgs args = problem.Args(alone.data() + r * problem.out_stride);
        args.a = problem.a.data() + r * problem.a_stride;
        args.rows = 1;
        Product<Weight>::Kernel(table())(args);
      }
      // Row counts around the tiles of vector registers, of tile registers, and a block of 96 rows.
      for (const int64_t rows : {2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 33, 47, 96, 97, 110}) {
        Guarded<float> batch(problem.rows * problem.out_stride);
        GemmArgs args = problem.Args(batch.data());
        args.rows = rows;
        Product<Weight>::Kernel(table())(args);
        EXPECT_EQ(std::memcmp(batch.data(), alone.data(), rows * problem.out_stride * 4), 0)
            << rows << " rows, k = " << k;
      }
    }
  }

  template <class Weight>
  void TestPanelsDoNotDependOnTheRange() {
    const Problem<Weight> problem(7, 90, 64 * 3 + 9, 6);
    const Guarded<float> whole = problem.Run(table());
    for (int64_t begin = 0; begin < 4; ++begin) {
      for (int64_t end = begin; end <= 4; ++end) {
        Guarded<float> part(problem.rows * problem.out_stride);
        GemmArgs args = problem.Args(part.data());
        args.panel_begin = begin;
        args.panel_end = end;
        Product<Weight>::Kernel(table())(args);
        for (int64_t i = 0; i < part.size(); ++i) {
          const int64_t panel = i % problem.out_stride / kPanelColumns;
          const bool computed = panel >= begin && panel < end;
          ASSERT_EQ(Bits(part[i]), computed ? Bits(whole[i]) : 0xffffffffu);
        }
      }
    }
  }

  template <class Weight>
  void TestNanAndInfinityStayInTheirRow() {
    Problem<Weight> problem(8, 33, 70, 7);
    using Activation = typename Problem<Weight>::Activation;
    problem.a[2 * problem.a_stride + 32] = ToStorage<Activation>(kNan);
    problem.a[5 * problem.a_stride] = ToStorage<Activation>(kInfinity);
    for (int64_t c = 0; c < problem.columns; ++c) problem.w[c * 33] = ToStorage<Weight>(-1);
    problem.Pack();
    const Guarded<float> out = problem.Run(table());
    for (int64_t r = 0; r < problem.rows; ++r) {
      for (int64_t c = 0; c < problem.columns; ++c) {
        const float x = out[r * problem.out_stride + c];
        if (r == 2) {
          ASSERT_TRUE(std::isnan(x));
        } else if (r == 5) {
          ASSERT_EQ(x, -kInfinity);
        } else {
          ASSERT_TRUE(std::isfinite(x));
        }
      }
    }
  }
};
GODWIT_FOR_EVERY_ISA(GemmTest);

TEST_P(GemmTest, F32MatchesScalar) { TestMatchesScalar<float>(); }
TEST_P(GemmTest, F16MatchesScalar) { TestMatchesScalar<F16>(); }
TEST_P(GemmTest, BF16MatchesScalar) { TestMatchesScalar<BF16>(); }

TEST_P(GemmTest, F32RowsDoNotDependOnTheBatch) { TestRowsDoNotDependOnTheBatch<float>(); }
TEST_P(GemmTest, F16RowsDoNotDependOnTheBatch) { TestRowsDoNotDependOnTheBatch<F16>(); }
TEST_P(GemmTest, BF16RowsDoNotDependOnTheBatch) { TestRowsDoNotDependOnTheBatch<BF16>(); }

// Outputs of more than a mebibyte with aligned whole vectors: some instruction sets write them past
// the caches.
TEST_P(GemmTest, BF16ManyRowsDoNotDependOnTheBatch) {
  const Problem<BF16> problem(300, 132, 944, 4);
  const Guarded<float> all = problem.Run(table());
  EXPECT_TRUE(all.GuardsIntact());
  for (int64_t row = 0; row < problem.rows; row += 50) {
    Guarded<float> some(50 * problem.out_stride);
    GemmArgs args = problem.Args(some.data());
    args.a = problem.a.data() + row * problem.a_stride;
    args.rows = 50;
    table().gemm_bf16(args);
    const auto bytes = static_cast<size_t>(50 * problem.out_stride * 4);
    EXPECT_EQ(std::memcmp(some.data(), all.data() + row * problem.out_stride, bytes), 0) << row;
  }
}

TEST_P(GemmTest, F32PanelsDoNotDependOnTheRange) { TestPanelsDoNotDependOnTheRange<float>(); }
TEST_P(GemmTest, F16PanelsDoNotDependOnTheRange) { TestPanelsDoNotDependOnTheRange<F16>(); }
TEST_P(GemmTest, BF16PanelsDoNotDependOnTheRange) { TestPanelsDoNotDependOnTheRange<BF16>(); }

TEST_P(GemmTest, F32NanAndInfinityStayInTheirRow) { TestNanAndInfinityStayInTheirRow<float>(); }
TEST_P(GemmTest, F16NanAndInfinityStayInTheirRow) { TestNanAndInfinityStayInTheirRow<F16>(); }
TEST_P(GemmTest, BF16NanAndInfinityStayInTheirRow) { TestNanAndInfinityStayInTheirRow<BF16>(); }

// Sums of small integers are exact in any order, so the test has no tolerance.
TEST_P(GemmTest, SmallIntegersAreExact) {
  Problem<BF16> problem(9, 128, 96, 8);
  for (int64_t r = 0; r < 9; ++r) {
    for (int64_t i = 0; i < 128; ++i) {
      problem.a[r * problem.a_stride + i] = ToBF16(static_cast<float>((r * 7 + i * 3) % 11 - 5));
    }
  }
  for (int64_t i = 0; i < 96 * 128; ++i) problem.w[i] = ToBF16(static_cast<float>(i % 13 - 6));
  problem.Pack();
  const Guarded<float> want = problem.Run(scalar(), /*with_bias=*/false);
  const Guarded<float> got = problem.Run(table(), /*with_bias=*/false);
  EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * 4), 0);
}

// The kernel must not read the first panel when only the second is asked for.
TEST_P(GemmTest, OtherPanelsAreNotRead) {
  Problem<float> problem(3, 20, 128, 9);
  const Guarded<float> whole = problem.Run(table());
  for (int64_t i = 0; i < 20 * kPanelColumns; ++i) problem.packed[i] = kNan;
  Guarded<float> part(problem.rows * problem.out_stride);
  GemmArgs args = problem.Args(part.data());
  args.panel_begin = 1;
  table().gemm_f32(args);
  for (int64_t r = 0; r < 3; ++r) {
    const int64_t i = r * problem.out_stride + kPanelColumns;
    EXPECT_EQ(std::memcmp(&part[i], &whole[i], kPanelColumns * 4), 0);
  }
}

}  // namespace
}  // namespace godwit::kernels::gemm_test
