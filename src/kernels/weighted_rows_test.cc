#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::weighted_rows_test {
namespace {

class WeightedRowsTest : public IsaTest {
 protected:
  // Rows of one size, each somewhere else.
  struct Rows {
    Rows(int64_t count, int64_t n, RandomFloats& random) {
      for (int64_t i = 0; i < count; ++i) {
        random.Fill(rows.emplace_back(n, i % 5));
      }
      for (Guarded<float>& row : rows) places.push_back(row.data());
    }
    std::vector<const float*> from() const { return {places.begin(), places.end()}; }

    std::vector<Guarded<float>> rows;
    std::vector<float*> places;
  };
};
GODWIT_FOR_EVERY_ISA(WeightedRowsTest);

TEST_P(WeightedRowsTest, SumsHaveTheBitsOfTheirDefinition) {
  RandomFloats random(1);
  for (const int64_t columns : kOddSizes) {
    for (const int64_t rows : {0, 1, 2, 3, 4, 7}) {
      for (const int64_t count : {0, 1, 33, 64}) {
        const Rows weights(rows, count, random), from(count, columns, random);
        Rows out(rows, columns, random);
        std::vector<Guarded<float>> want = out.rows;
        std::vector<float*> wanted;
        for (Guarded<float>& row : want) wanted.push_back(row.data());
        const auto weight_rows = weights.from(), from_rows = from.from();
        const auto args = [&](float* const* to) {
          return AddWeightedRowsArgs{.weights = weight_rows.data(),
                                     .from = from_rows.data(),
                                     .out = to,
                                     .rows = rows,
                                     .count = count,
                                     .columns = columns};
        };
        table().add_weighted_rows(args(out.places.data()));
        scalar().add_weighted_rows(args(wanted.data()));
        for (int64_t i = 0; i < rows; ++i) {
          EXPECT_TRUE(out.rows[i].GuardsIntact());
          for (int64_t c = 0; c < columns; ++c) {
            ASSERT_EQ(Bits(out.rows[i][c]), Bits(want[i][c])) << rows << " " << count << " " << c;
          }
        }
      }
    }
  }
}

TEST_P(WeightedRowsTest, DotProductsAreCloseAndEachIsAsAlone) {
  RandomFloats random(2);
  for (const int64_t n : kOddSizes) {
    for (const int64_t count : {0, 1, 4, 7}) {
      const Rows rows(count, n, random), x(1, n, random);
      Guarded<float> dots(count);
      const auto from = rows.from();
      table().dot_rows(x.places[0], from.data(), count, n, dots.data());
      EXPECT_TRUE(dots.GuardsIntact());
      for (int64_t j = 0; j < count; ++j) {
        float want, alone;
        scalar().dot_rows(x.places[0], &from[j], 1, n, &want);
        EXPECT_NEAR(dots[j], want, 1e-6 * std::sqrt(static_cast<double>(n)));
        table().dot_rows(x.places[0], &from[j], 1, n, &alone);
        EXPECT_EQ(Bits(dots[j]), Bits(alone));
      }
    }
  }
}

// Dot products of vectors that decay from row to row, and these vectors.
TEST_P(WeightedRowsTest, DecayedDotProductsAreCloseAndVectorsTheSame) {
  RandomFloats random(3);
  for (const int64_t n : kOddSizes) {
    for (const int64_t count : {0, 1, 5, 64}) {
      const Rows rows(count, n, random);
      Rows decays(count, n, random);
      for (Guarded<float>& row : decays.rows) random.Fill(row, 0.5f, 1);
      if (count > 2) std::fill_n(decays.places[1], n, 0.0f);
      const Rows start(2, n, random);
      const auto from = rows.from(), factors = decays.from();
      std::vector<Guarded<float>> got = start.rows, want = start.rows, tail = start.rows;
      Guarded<float> dots(2 * count), wanted(2 * count), last(2);
      const auto run = [&](const KernelTable& kernels, std::vector<Guarded<float>>& vectors,
                           int64_t first, float* x_dots, float* y_dots) {
        kernels.dot_decayed_rows({.x = vectors[0].data(),
                                  .y = vectors[1].data(),
                                  .rows = from.data() + first,
                                  .decays = factors.data() + first,
                                  .x_dots = x_dots,
                                  .y_dots = y_dots,
                                  .count = count - first,
                                  .n = n});
      };
      run(table(), got, 0, dots.data(), dots.data() + count);
      run(scalar(), want, 0, wanted.data(), wanted.data() + count);
      EXPECT_TRUE(dots.GuardsIntact());
      for (int64_t j = 0; j < 2 * count; ++j) {
        ASSERT_NEAR(dots[j], wanted[j], 1e-6 * std::sqrt(static_cast<double>(n))) << n << " " << j;
      }
      for (size_t v = 0; v < 2; ++v) {
        EXPECT_TRUE(got[v].GuardsIntact());
        for (int64_t i = 0; i < n; ++i) ASSERT_EQ(Bits(got[v][i]), Bits(want[v][i])) << i;
      }
      if (count == 0) continue;
      run(table(), tail, count - 1, last.data(), last.data() + 1);
      EXPECT_EQ(Bits(last[0]), Bits(dots[count - 1]));
      EXPECT_EQ(Bits(last[1]), Bits(dots[2 * count - 1]));
    }
  }
}

}  // namespace
}  // namespace godwit::kernels::weighted_rows_test
