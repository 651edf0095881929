// Products with grouped weights are defined to the bit. Every instruction set is compared with the
// scalar kernel, and that with the weights that a panel unpacks to.
#include <algorithm>
#include <cmath>

#include "kernels/group_packing.h"
#include "kernels/kernel_test_support.h"
#include "kernels/packing.h"

namespace godwit::kernels::gemm_groups_test {
namespace {

constexpr std::array<int8_t, 16> kTable = {-128, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  127};
constexpr GroupFormat kFormats[] = {
    {.codes = Codes::k4, .scaling = Scaling::kCentred, .group = 32},
    {.codes = Codes::k4, .scaling = Scaling::kCentred, .group = 128},
    {.codes = Codes::k4, .scaling = Scaling::kCentred, .group = 16},
    {.codes = Codes::k4, .scaling = Scaling::kZeros, .group = 128},
    {.codes = Codes::k4, .scaling = Scaling::kZeros, .group = 64},
    {.codes = Codes::k4, .scaling = Scaling::kMins, .group = 32},
    {.codes = Codes::k4, .scaling = Scaling::kMins, .group = 16},
    {.codes = Codes::k4, .scaling = Scaling::kNestedMins, .group = 32},
    {.codes = Codes::k4, .scaling = Scaling::kNestedMins, .group = 16},
    {.codes = Codes::k4Table, .scaling = Scaling::kCentred, .group = 32, .table = kTable},
    {.codes = Codes::k4Table, .scaling = Scaling::kNested, .group = 32, .table = kTable},
    {.codes = Codes::k4Table, .scaling = Scaling::kNested, .group = 16, .table = kTable},
    {.codes = Codes::k5, .scaling = Scaling::kCentred, .group = 32},
    {.codes = Codes::k5, .scaling = Scaling::kMins, .group = 32},
    {.codes = Codes::k5, .scaling = Scaling::kNestedMins, .group = 32},
    {.codes = Codes::k6, .scaling = Scaling::kNested, .group = 16},
    {.codes = Codes::k6, .scaling = Scaling::kNestedMins, .group = 16},
    {.codes = Codes::k6, .scaling = Scaling::kNestedMins, .group = 32},
    {.codes = Codes::k8, .scaling = Scaling::kCentred, .group = 32},
    {.codes = Codes::k8, .scaling = Scaling::kCentred, .group = 256},
    {.codes = Codes::k8, .scaling = Scaling::kZeros, .group = 128},
    {.codes = Codes::k8, .scaling = Scaling::kZeros, .group = 16},
};

// A random product, with the extremes of codes and activations among its numbers.
struct Problem {
  Problem(const GroupFormat& of, int64_t n_rows, int64_t depth, int64_t n_columns, uint32_t seed)
      : format(of),
        rows(n_rows),
        k(depth),
        columns(n_columns),
        blocks(BlockCount(of, depth)),
        a_stride(blocks * BlockInputs(of) + 8 * (seed % 3)),
        sums_stride(blocks * GroupsOfBlock(of) + seed % 2),
        out_stride(n_columns + seed % 4),
        a(n_rows * a_stride),
        packed(PanelCount(n_columns) * GroupPanelBytes(of, depth)),
        scales(n_rows * blocks),
        sums(n_rows * sums_stride),
        factors(n_columns),
        bias(n_columns) {
    RandomFloats random(seed);
    std::fill_n(packed.data(), packed.size(), uint8_t{0});
    for (int64_t c = 0; c < columns; ++c) {
      PackColumn(format, RandomRow(random), c % kPanelColumns, Panel(c));
    }
    std::fill_n(a.data(), a.size(), int8_t{0});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < k; ++i) {
        a[r * a_stride + i] = static_cast<int8_t>(random.Extreme(-127, 127));
      }
    }
    random.Fill(scales, 1e-4f, 1e-2f);
    random.Fill(bias);
    for (int64_t c = 0; c < columns; ++c) factors[c] = std::ldexp(1.0f, random.Integer(-4, 4));
    Finish();
  }

  GroupedRow RandomRow(RandomFloats& random) const {
    GroupedRow row = NewGroupedRow(format, k);
    const int64_t most = (1 << BitsOf(format.codes)) - 1;
    for (uint8_t& x : row.codes) x = static_cast<uint8_t>(random.Extreme(0, most));
    for (float& x : row.scales) x = ToFloat(ToF16(random(-0.1f, 0.1f)));
    for (float& x : row.mins) x = ToFloat(ToF16(random(-0.1f, 0.1f)));
    for (uint8_t& x : row.zeros) x = static_cast<uint8_t>(random.Integer(0, 16));
    for (int8_t& x : row.parts) x = static_cast<int8_t>(random.Extreme(-128, 127));
    for (int8_t& x : row.min_parts) x = static_cast<int8_t>(random.Extreme(-128, 127));
    return row;
  }

  // Computes the sums again after changes of a.
  void Finish() {
    std::fill_n(sums.data(), sums.size(), int16_t{0});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < k; ++i) {
        sums[r * sums_stride + i / format.group] += a[r * a_stride + i];
      }
    }
  }

  uint8_t* Panel(int64_t column) {
    return packed.data() + column / kPanelColumns * GroupPanelBytes(format, k);
  }

  GroupGemmArgs Args(float* out) const {
    return {.format = &format,
            .a = a.data(),
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
            .a_scales = scales.data(),
            .a_scales_stride = blocks,
            .a_sums = sums.data(),
            .a_sums_stride = sums_stride,
            .factors = factors.data()};
  }

  Guarded<float> Run(const KernelTable& table) const {
    Guarded<float> out(rows * out_stride);
    table.gemm_groups(Args(out.data()));
    return out;
  }

  GroupFormat format;
  int64_t rows, k, columns, blocks, a_stride, sums_stride, out_stride;
  Guarded<int8_t> a;
  Guarded<uint8_t> packed;
  Guarded<float> scales;
  Guarded<int16_t> sums;
  Guarded<float> factors, bias;
};

class GemmGroupsTest : public IsaTest {
 protected:
  void ExpectScalar(const Problem& problem) {
    const Guarded<float> got = problem.Run(table()), want = problem.Run(scalar());
    EXPECT_TRUE(got.GuardsIntact());
    for (int64_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(Bits(got[i]), Bits(want[i]))
          << problem.rows << " x " << problem.k << " x " << problem.columns << " at "
          << i / problem.out_stride << ", " << i % problem.out_stride << ", group "
          << problem.format.group << ", scaling " << static_cast<int>(problem.format.scaling);
    }
  }
};
GODWIT_FOR_EVERY_ISA(GemmGroupsTest);

TEST_P(GemmGroupsTest, HasTheScalarBitsAtEveryShape) {
  for (const GroupFormat& format : kFormats) {
    for (const int64_t rows : {0, 1, 2, 5, 6, 7, 13, 97}) {
      for (const int64_t k : {0, 1, 8, 31, 32, 33, 100, 256, 600}) {
        for (const int64_t columns : {1, 64, 130}) {
          if (rows > 13 && k > 100) continue;  // the scalar kernel takes its time
          ExpectScalar(Problem(format, rows, k, columns, rows * 10007 + k * 101 + columns));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// More blocks than one pass of any tile of rows takes, with even and odd tiles.
TEST_P(GemmGroupsTest, HasTheScalarBitsOverSeveralPasses) {
  for (const GroupFormat& format : kFormats) {
    for (const int64_t rows : {1, 9, 20, 35}) ExpectScalar(Problem(format, rows, 1300, 70, 3));
  }
}

TEST_P(GemmGroupsTest, RELEASE_RowsDoNotDependOnTheBatch) {
  for (const GroupFormat& format : kFormats) {
    const Problem problem(format, 39, 700, 130, 5);
    const Guarded<float> all = problem.Run(table());
    for (int64_t rows = 1; rows <= problem.rows; rows += 3) {
      for (int64_t begin = 0; begin + rows <= problem.rows; begin += 6) {
        Guarded<float> some(rows * problem.out_stride);
        GroupGemmArgs args = problem.Args(some.data());
        args.a += begin * problem.a_stride;
        args.a_scales += begin * problem.blocks;
        args.a_sums += begin * problem.sums_stride;
        args.rows = rows;
        table().gemm_groups(args);
        EXPECT_EQ(std::memcmp(some.data(), &all[begin * problem.out_stride],
                              rows * problem.out_stride * sizeof(float)),
                  0);
      }
    }
  }
}

TEST_P(GemmGroupsTest, PanelsDoNotDependOnTheRange) {
  const Problem problem(kFormats[0], 7, 90, 64 * 3 + 9, 6);
  const Guarded<float> whole = problem.Run(table());
  for (int64_t begin = 0; begin < 4; ++begin) {
    for (int64_t end = begin; end <= 4; ++end) {
      Guarded<float> part(problem.rows * problem.out_stride);
      GroupGemmArgs args = problem.Args(part.data());
      args.panel_begin = begin;
      args.panel_end = end;
      table().gemm_groups(args);
      for (int64_t i = 0; i < part.size(); ++i) {
        const int64_t panel = i % problem.out_stride / kPanelColumns;
        const bool computed = panel >= begin && panel < end;
        ASSERT_EQ(Bits(part[i]), computed ? Bits(whole[i]) : 0xffffffffu);
      }
    }
  }
}

// Extremes whose sums of products of bytes would leave int16.
TEST_P(GemmGroupsTest, ExtremesDoNotSaturate) {
  for (const GroupFormat& format : kFormats) {
    for (const int8_t activation : {-127, 127}) {
      Problem problem(format, 7, 512, 65, 7);
      GroupedRow row = NewGroupedRow(format, problem.k);
      std::ranges::fill(row.codes, static_cast<uint8_t>((1 << BitsOf(format.codes)) - 1));
      std::ranges::fill(row.scales, 1.0f);
      std::ranges::fill(row.mins, 1.0f);
      std::ranges::fill(row.parts, int8_t{127});
      std::ranges::fill(row.min_parts, int8_t{-128});
      for (int64_t c = 0; c < problem.columns; ++c) {
        PackColumn(format, row, c % kPanelColumns, problem.Panel(c));
      }
      for (int64_t r = 0; r < problem.rows; ++r) {
        std::fill_n(&problem.a[r * problem.a_stride], problem.k, activation);
      }
      problem.Finish();
      ExpectScalar(problem);
    }
  }
}

TEST_P(GemmGroupsTest, WithoutBiasAndFactors) {
  const Problem problem(kFormats[0], 3, 64, 70, 8);
  Guarded<float> got(problem.rows * problem.out_stride), want(problem.rows * problem.out_stride);
  for (const auto& [to, table] : {std::pair{&got, &this->table()}, std::pair{&want, &scalar()}}) {
    GroupGemmArgs args = problem.Args(to->data());
    args.bias = nullptr;
    args.factors = nullptr;
    table->gemm_groups(args);
  }
  for (int64_t i = 0; i < got.size(); ++i) ASSERT_EQ(Bits(got[i]), Bits(want[i]));
}

TEST(GroupedWeights, AllThatAreInUseAreTested) {
  for (const Codes codes : {Codes::k4, Codes::k4Table, Codes::k5, Codes::k6, Codes::k8}) {
    for (const Scaling scaling : {Scaling::kCentred, Scaling::kZeros, Scaling::kMins,
                                  Scaling::kNested, Scaling::kNestedMins}) {
      const bool tested = std::ranges::any_of(kFormats, [&](const GroupFormat& format) {
        return format.codes == codes && format.scaling == scaling;
      });
      EXPECT_EQ(IsInUse(codes, scaling), tested)
          << static_cast<int>(codes) << ", " << static_cast<int>(scaling);
    }
  }
  for (const GroupFormat& format : kFormats) EXPECT_TRUE(IsInUse(format));
}

// The scalar kernel against the numbers that the packed weights represent.
TEST(GroupedWeights, MultiplyAsTheyUnpack) {
  for (const GroupFormat& format : kFormats) {
    Problem problem(format, 3, 300, 70, 9);
    const Guarded<float> got = problem.Run(*AllIsas().back().table);
    std::vector<float> w(problem.k);
    for (int64_t c = 0; c < problem.columns; ++c) {
      UnpackColumn(format, problem.Panel(c), c % kPanelColumns, problem.k, w.data());
      for (int64_t r = 0; r < problem.rows; ++r) {
        double sum = 0, magnitude = 0;
        for (int64_t i = 0; i < problem.k; ++i) {
          const double a = double{problem.scales[r * problem.blocks + i / BlockInputs(format)]} *
                           problem.a[r * problem.a_stride + i];
          sum += a * w[i];
          magnitude += std::abs(a * w[i]);
        }
        const double want = sum * problem.factors[c] + problem.bias[c];
        ASSERT_NEAR(got[r * problem.out_stride + c], want,
                    1e-6 * (magnitude * problem.factors[c] + 1))
            << "scaling " << static_cast<int>(format.scaling);
      }
    }
  }
}

TEST(GroupedWeights, AColumnUnpacksToItsNumbers) {
  for (const Codes codes : {Codes::k4, Codes::k5, Codes::k6, Codes::k8}) {
    const GroupFormat format{.codes = codes, .scaling = Scaling::kZeros, .group = 32};
    const size_t distinct = size_t{1} << BitsOf(codes);
    GroupedRow row = NewGroupedRow(format, 300);
    const auto code = [&](size_t i) { return static_cast<uint8_t>(5 * i % distinct); };
    for (size_t i = 0; i < row.codes.size(); ++i) row.codes[i] = code(i);
    for (size_t g = 0; g < row.scales.size(); ++g) {
      row.scales[g] = g % 2 == 0 ? 0.5f : 2.0f;
      row.zeros[g] = static_cast<uint8_t>(3 * g);
    }
    Guarded<uint8_t> panel(GroupPanelBytes(format, 300));
    std::fill_n(panel.data(), panel.size(), uint8_t{0});
    PackColumn(format, row, 17, panel.data());
    std::vector<float> w(300);
    UnpackColumn(format, panel.data(), 17, 300, w.data());
    for (size_t i = 0; i < w.size(); ++i) {
      const size_t g = i / 32;
      EXPECT_EQ(w[i], row.scales[g] * (float(code(i)) - float(3 * g))) << BitsOf(codes) << " bits";
    }
  }
}

}  // namespace
}  // namespace godwit::kernels::gemm_groups_test
