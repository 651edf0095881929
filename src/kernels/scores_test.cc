#include <algorithm>
#include <cmath>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::scores_test {
namespace {

// Queries, the keys of one tile, and room for their scores.
struct Problem {
  Problem(int64_t rows, int64_t width, int64_t keys, bool biased, uint32_t seed)
      : rows(rows),
        width(width),
        keys(keys),
        stride((width + kQuad - 1) / kQuad * kQuad + kQuad),
        q(rows * stride),
        q_scales(rows),
        q_sums(rows),
        k(KeyElements(kQuad, width)),
        k_scales(kTileTokens),
        bias(biased ? rows * kTileTokens : 0) {
    RandomFloats random(seed);
    for (int64_t r = 0; r < rows; ++r) {
      q_sums[r] = 0;
      for (int64_t d = 0; d < stride; ++d) {
        const auto x = static_cast<int8_t>(d < width ? random.Integer(-127, 127) : 0);
        q[r * stride + d] = x;
        q_sums[r] += x;
      }
    }
    for (int64_t i = 0; i < k.size(); ++i) k[i] = static_cast<uint8_t>(random.Integer(1, 255));
    for (int64_t d = width; d < (width + kQuad - 1) / kQuad * kQuad; ++d) {
      for (int64_t j = 0; j < kTileTokens; ++j) k[KeyAt(kQuad, d, j)] = 128;
    }
    random.Fill(q_scales, 0.01f, 0.05f);
    random.Fill(k_scales, 0.01f, 0.05f);
    random.Fill(bias, -8, 0);
    for (int64_t j = keys; j < kTileTokens; ++j) k_scales[j] = kNan;
  }

  int64_t rows, width, keys, stride;
  Guarded<int8_t> q;
  Guarded<float> q_scales;
  Guarded<int32_t> q_sums;
  Guarded<uint8_t> k;
  Guarded<float> k_scales;
  Guarded<float> bias;
};

struct Scores {
  Scores(const KernelTable& table, const Problem& problem, int64_t first, int64_t rows)
      : values(rows * kStride) {
    table.score_tile_i8(
        {.q = problem.q.data() + first * problem.stride,
         .q_stride = problem.stride,
         .q_scales = problem.q_scales.data() + first,
         .q_sums = problem.q_sums.data() + first,
         .rows = rows,
         .k = problem.k.data(),
         .k_scales = problem.k_scales.data(),
         .keys = problem.keys,
         .width = problem.width,
         .scale = 0.25f,
         .bias = problem.bias.size() == 0 ? nullptr : problem.bias.data() + first * kTileTokens,
         .scores = values.data(),
         .scores_stride = kStride});
    EXPECT_TRUE(values.GuardsIntact());
  }
  static constexpr int64_t kStride = kTileTokens + kLaneFloats;
  float At(int64_t row, int64_t j) const { return values[row * kStride + j]; }

  Guarded<float> values;
};

class ScoresTest : public IsaTest {};

TEST_P(ScoresTest, AreThoseOfTheScalarKernel) {
  uint32_t seed = 0;
  for (const int64_t rows : {1, 2, 5, 6, 7, 13}) {
    for (const int64_t width : {1, 3, 4, 16, 65, 256, 1024}) {
      for (const int64_t keys : {1, 15, 16, 17, 63, 64}) {
        for (const bool biased : {false, true}) {
          const Problem problem(rows, width, keys, biased, ++seed);
          const Scores expected(scalar(), problem, 0, rows), found(table(), problem, 0, rows);
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t j = 0; j < kTileTokens; ++j) {
              const float want = expected.At(r, j);
              if (j >= keys) {
                EXPECT_EQ(found.At(r, j), -kInfinity);
              } else {
                EXPECT_NEAR(found.At(r, j), want, 1e-5f + 4 * kEpsilon * std::abs(want));
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(ScoresTest, DoNotDependOnTheRowsBeside) {
  const Problem problem(13, 40, 50, true, 7);
  const Scores all(table(), problem, 0, 13);
  for (int64_t r = 0; r < 13; ++r) {
    const Scores alone(table(), problem, r, 1);
    for (int64_t j = 0; j < kTileTokens; ++j) EXPECT_EQ(Bits(alone.At(0, j)), Bits(all.At(r, j)));
  }
}

TEST_P(ScoresTest, NoKeysGiveNoScores) {
  const Problem problem(2, 16, 0, false, 8);
  const Scores found(table(), problem, 0, 2);
  for (int64_t j = 0; j < kTileTokens; ++j) EXPECT_EQ(found.At(1, j), -kInfinity);
}

TEST_P(ScoresTest, SumsOfPowersAreThoseOfDoubles) {
  for (const int64_t n : {1, 7, 8, 9, 16, 17, 100, 1000}) {
    Guarded<float> x(n);
    RandomFloats(static_cast<uint32_t>(n)).Fill(x, -40, 300);
    if (n > 2) x[n / 2] = -kInfinity;
    const PowerSum found = table().sum_powers(x.data(), n);
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += std::exp2(double{x[i]} - 300);
    EXPECT_EQ(found.maximum, std::ceil(*std::max_element(x.data(), x.data() + n)));
    EXPECT_NEAR(found.maximum + std::log2(found.sum), std::log2(sum) + 300, 1e-3) << n;
  }
  const float nothing[3] = {-kInfinity, -kInfinity, -kInfinity};
  EXPECT_EQ(table().sum_powers(nothing, 3).sum, 0);
  EXPECT_EQ(table().sum_powers(nothing, 3).maximum, 0);
}

GODWIT_FOR_EVERY_ISA(ScoresTest);

}  // namespace
}  // namespace godwit::kernels::scores_test
