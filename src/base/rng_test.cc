#include "base/rng.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace godwit::rng_test {
namespace {

using ::testing::ElementsAre;

// Known answers that the authors publish with the algorithm.
TEST(Philox, KnownAnswers) {
  EXPECT_THAT(Philox4x32({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(
      Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
      ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(
      Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Rng, EveryPartOfTheKeyMatters) {
  std::vector<uint64_t> values;
  for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
    for (const uint64_t sequence : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32}) {
      for (const int64_t position : {int64_t{0}, int64_t{1}, int64_t{1} << 16, int64_t{1} << 40}) {
        for (const uint32_t draw : {0u, 1u, 65535u}) {
          values.push_back(RandomBits(seed, sequence, position, draw));
        }
      }
    }
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end());
}

TEST(Rng, UniformFillsTheUnitInterval) {
  constexpr int kBins = 64;
  constexpr int kDraws = 64000;
  std::vector<int> bins(kBins, 0);
  for (int position = 0; position < kDraws; ++position) {
    const double value = Uniform(/*seed=*/7, /*sequence=*/3, position, /*draw=*/0);
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++bins[value * kBins];
  }
  double chi_square = 0;
  const double expected = static_cast<double>(kDraws) / kBins;
  for (const int count : bins) chi_square += (count - expected) * (count - expected) / expected;
  EXPECT_LT(chi_square, 103.4);  // 63 degrees of freedom: exceeded with probability 0.001
}

TEST(Rng, IsPinned) {
  // Sampled text is reproducible across releases. A change of these values breaks that.
  EXPECT_EQ(RandomBits(0, 0, 0, 0), 0xe169c58d6627e8d5u);
  EXPECT_EQ(Uniform(0, 0, 0, 0), static_cast<double>(0xe169c58d6627e8d5u >> 11) * 0x1p-53);
}

}  // namespace
}  // namespace godwit::rng_test
