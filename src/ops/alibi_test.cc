#include "ops/alibi.h"

#include <gtest/gtest.h>

#include <cmath>

namespace godwit::ops::alibi_test {
namespace {

std::vector<float> Fill(const Alibi& alibi, int64_t head, AlibiPlace place, int64_t first,
                        size_t keys = 64) {
  std::vector<float> bias(keys);
  FillAlibi(alibi, head, place, first, bias);
  return bias;
}

TEST(AlibiTest, IsSlopeTimesDistance) {
  const Alibi alibi{.slopes = {0.5f, 0.3f}};
  EXPECT_EQ(Fill(alibi, 0, {.query = 3, .shift = 0}, 0, 4),
            (std::vector{-1.5f, -1.0f, -0.5f, 0.0f}));
  for (const int64_t query : {int64_t{63}, int64_t{1000}, int64_t{10'000'000}}) {
    const auto bias = Fill(alibi, 1, {.query = query, .shift = 0}, query - 63);
    for (int j = 0; j < 64; ++j) {
      EXPECT_EQ(bias[j], 0.3f * static_cast<float>(j - 63)) << query;
    }
  }
}

TEST(AlibiTest, SlopesOfHeadsThatAreAPowerOfTwoAndOfOthers) {
  using Slopes = std::vector<float>;
  EXPECT_EQ(AlibiSlopes(1), (Slopes{0x1p-8f}));
  EXPECT_EQ(AlibiSlopes(4), (Slopes{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f}));
  EXPECT_EQ(AlibiSlopes(6), (Slopes{0x1p-2f, 0x1p-4f, 0x1p-6f, 0x1p-8f, 0x1p-1f, 0x1p-3f}));
  const Slopes bloom = AlibiSlopes(112);
  ASSERT_EQ(bloom.size(), 112u);
  EXPECT_EQ(bloom[63], 0x1p-8f);
  EXPECT_EQ(bloom[64], static_cast<float>(std::exp2(-0.0625)));
  EXPECT_EQ(bloom[111], static_cast<float>(std::exp2(-95 * 0.0625)));
}

TEST(AlibiTest, IsScaled) {
  for (const bool in_bf16 : {false, true}) {
    const Alibi alibi{.slopes = {0.25f}, .scale = 0.375f, .in_bf16 = in_bf16};
    EXPECT_EQ(Fill(alibi, 0, {.query = 7, .shift = 0}, 3, 2),
              (std::vector{-4 * 0.25f * 0.375f, -3 * 0.25f * 0.375f}));
  }
}

TEST(AlibiTest, WithoutSlopesIsZero) {
  std::vector<float> bias(5, 3.0f);
  FillAlibi({}, 1, {.query = 7, .shift = 0}, 3, bias);
  EXPECT_EQ(bias, std::vector<float>(5));
}

// Biases depend on places in the cache alone, not on the keys' positions in the text.
TEST(AlibiTest, AShiftMovesKeys) {
  for (const bool in_bf16 : {false, true}) {
    const Alibi alibi{.slopes = {0.1f}, .in_bf16 = in_bf16};
    EXPECT_EQ(Fill(alibi, 0, {.query = 300, .shift = -1'000'000}, 1'000'200),
              Fill(alibi, 0, {.query = 300, .shift = 0}, 200));
  }
}

TEST(AlibiTest, InBf16KeysStandOnStairs) {
  const Alibi alibi{.slopes = {0.5f}, .in_bf16 = true};
  // BF16 has eight bits: 256, 258, 260, ties to even.
  const auto bias = Fill(alibi, 0, {.query = 264, .shift = 0}, 255, 9);
  EXPECT_EQ(bias, (std::vector{-4.5f, -4.0f, -4.0f, -3.0f, -2.0f, -2.0f, -2.0f, -1.0f, 0.0f}));
  // Slope and product are rounded, too: 0.3 is 0.30078125, 3 times that 0.90234375.
  const Alibi odd{.slopes = {0.3f}, .in_bf16 = true};
  EXPECT_EQ(Fill(odd, 0, {.query = 0, .shift = 0}, 3, 1), std::vector{0.90234375f});
  EXPECT_EQ(Fill(odd, 0, {.query = 0, .shift = 0}, 5, 1), std::vector{1.5f}) << "1.50390625";
  // The position is rounded before the product: otherwise 77.5.
  EXPECT_EQ(Fill(odd, 0, {.query = 0, .shift = 0}, 257, 1), std::vector{77.0f});
}

TEST(AlibiTest, AnyDistanceIsFinite) {
  for (const bool in_bf16 : {false, true}) {
    const Alibi alibi{.slopes = {1.0f}, .in_bf16 = in_bf16};
    constexpr int64_t kFar = int64_t{1} << 50;
    for (const float x : Fill(alibi, 0, {.query = kFar, .shift = 0}, 0)) {
      EXPECT_TRUE(std::isfinite(x));
      EXPECT_LT(x, -1e9f);
    }
  }
}

}  // namespace
}  // namespace godwit::ops::alibi_test
