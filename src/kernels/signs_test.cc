#include "kernels/kernel_test_support.h"

namespace godwit::kernels::signs_test {
namespace {

// Tables of queries, and tiles of signs.
struct Problem {
  Problem(int64_t rows, int64_t groups, int64_t tiles, uint32_t seed)
      : rows(rows),
        groups(groups),
        tiles(tiles),
        tables(rows * groups * 16),
        fine(rows * groups * 16),
        offsets(rows),
        signs(tiles * groups * kTileTokens / 2) {
    RandomFloats random(seed);
    for (int64_t r = 0; r < rows; ++r) {
      offsets[r] = static_cast<int32_t>(random.Integer(0, 64 * groups));
      for (int64_t g = 0; g < groups; ++g) {
        for (int64_t i = 0; i < 16; ++i) {
          for (uint8_t* const all : {tables.data(), fine.data()}) {
            all[(r * groups + g) * 16 + i] = static_cast<uint8_t>(random.Integer(0, 127));
          }
        }
      }
    }
    for (int64_t i = 0; i < signs.size(); ++i) {
      signs[i] = static_cast<uint8_t>(random.Integer(0, 255));
    }
  }

  int64_t rows, groups, tiles;
  Guarded<uint8_t> tables, fine;
  Guarded<int32_t> offsets;
  Guarded<uint8_t> signs;
};

// Scores [rows, tiles + 2], the last two of which stay unwritten.
Guarded<float> Scores(const KernelTable& table, const Problem& problem, bool fine = false) {
  const int64_t stride = problem.tiles + 2;
  Guarded<float> scores(problem.rows * stride);
  table.score_signs({.tables = problem.tables.data(),
                     .fine = fine ? problem.fine.data() : nullptr,
                     .offsets = problem.offsets.data(),
                     .rows = problem.rows,
                     .groups = problem.groups,
                     .signs = problem.signs.data(),
                     .tiles = problem.tiles,
                     .scores = scores.data(),
                     .scores_stride = stride});
  EXPECT_TRUE(scores.GuardsIntact());
  return scores;
}

class SignsTest : public IsaTest {};

// Sums are exact, so every instruction set gives the same bits.
TEST_P(SignsTest, ScoreAsTheScalarKernelDoes) {
  uint32_t seed = 0;
  for (const int64_t rows : {1, 2, 3, 4, 7, 8}) {
    for (const int64_t groups : {8, 16, 24, 32, 256}) {
      const int64_t tiles = ++seed % 4;
      const Problem problem(rows, groups, tiles, seed);
      for (const bool fine : {false, true}) {
        const auto expected = Scores(scalar(), problem, fine);
        const auto found = Scores(table(), problem, fine);
        for (int64_t i = 0; i < rows * tiles; ++i) {
          const int64_t at = i / tiles * (tiles + 2) + i % tiles;
          EXPECT_EQ(found[at], expected[at]) << groups << " groups, fine: " << fine;
        }
      }
    }
  }
}

// A key's score is the sum over its dimensions: +q where its sign is set, else -q. No other key has
// a sign set.
TEST_P(SignsTest, AddUpTheSignsOfAKey) {
  constexpr int64_t kGroups = 8;
  const float q[4 * kGroups] = {3, -1, 2,  0, 5, 5,  -7, 1, 0, 0, 0, 4,  -2, 6, 1,  1,
                                9, 2,  -3, 1, 0, -8, 1,  1, 4, 2, 2, -6, 7,  0, -5, 3};
  constexpr int32_t kHalf = 64;
  Problem problem(1, kGroups, 1, 1);
  problem.offsets[0] = kHalf * kGroups;
  float none = 0;
  for (const float number : q) none -= number;
  for (int64_t g = 0; g < kGroups; ++g) {
    for (int64_t pattern = 0; pattern < 16; ++pattern) {
      float sum = kHalf;
      for (int64_t i = 0; i < 4; ++i) sum += (pattern >> i & 1) != 0 ? q[4 * g + i] : -q[4 * g + i];
      problem.tables[g * 16 + pattern] = static_cast<uint8_t>(sum);
    }
  }
  for (int64_t key = 0; key < kTileTokens; ++key) {
    std::fill_n(problem.signs.data(), problem.signs.size(), uint8_t{0});
    float expected = 0;
    for (int64_t d = 0; d < 4 * kGroups; ++d) {
      const bool positive = (key + d) % 3 != 0;
      expected += positive ? q[d] : -q[d];
      const SignPlace place = SignAt(d / 4, key);
      if (positive) {
        problem.signs[place.byte] |= static_cast<uint8_t>(1 << (place.shift + d % 4));
      }
    }
    EXPECT_EQ(Scores(table(), problem)[0], std::max(expected, none)) << "key " << key;
  }
}

// The largest possible score: 127 from every group, also from the second table.
TEST_P(SignsTest, TheSecondTableIsFiner) {
  Problem problem(1, 256, 1, 1);
  problem.offsets[0] = 3;
  std::fill_n(problem.tables.data(), problem.tables.size(), uint8_t{127});
  for (const int fine : {1, 127}) {
    std::fill_n(problem.fine.data(), problem.fine.size(), static_cast<uint8_t>(fine));
    EXPECT_EQ(Scores(table(), problem, true)[0], 256 * (127 * 128 + fine) - 3);
  }
}

GODWIT_FOR_EVERY_ISA(SignsTest);

}  // namespace
}  // namespace godwit::kernels::signs_test
