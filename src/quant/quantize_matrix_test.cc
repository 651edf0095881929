#include "quant/quantize_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "quant/quant_test_support.h"
#include "quant/scheme.h"

namespace godwit::quant::quantize_matrix_test {
namespace {

constexpr float kSmallest = 0x1p-23f;

QuantizedMatrix Quantize(const std::vector<std::vector<float>>& rows, int64_t rows_per_scale,
                         DType stored = DType::kF32, int threads = 2) {
  return QuantizeMatrix(
      *TestExec(threads), "x.weight", std::ssize(rows), std::ssize(rows[0]), rows_per_scale, stored,
      [&](int64_t row, std::span<float> out) { std::ranges::copy(rows[row], out.begin()); });
}

TEST(ToInt8, RoundsToEvenAndSaturates) {
  EXPECT_EQ(ToInt8(0.5f, 1), 0);
  EXPECT_EQ(ToInt8(1.5f, 1), 2);
  EXPECT_EQ(ToInt8(-2.5f, 1), -2);
  EXPECT_EQ(ToInt8(127.5f, 1), 127);
  EXPECT_EQ(ToInt8(-127.5f, 1), -128);
  EXPECT_EQ(ToInt8(-1e30f, 1), -128);
  EXPECT_EQ(ToInt8(1e30f, 1), 127);
  EXPECT_EQ(ToInt8(3.0f, 2), 2);  // 1.5
}

TEST(StoredScale, IsWhatTheCheckpointHolds) {
  EXPECT_EQ(StoredScale(127, DType::kF32), 1);
  EXPECT_EQ(StoredScale(127 * (1 + 0x1p-9f), DType::kBF16), 1);  // rounded to 8 bits
  EXPECT_EQ(StoredScale(0, DType::kBF16), kSmallest);
  EXPECT_EQ(ScaleType(DType::kBF16), DType::kBF16);
  EXPECT_EQ(ScaleType(DType::kF16), DType::kF32);
}

// However the scale was rounded, the largest weight of either sign keeps its code.
TEST(StoredScale, RoundingNeverSaturates) {
  for (int i = 0; i < 1000; ++i) {
    const float largest = 1 + static_cast<float>(i) / 1000;
    EXPECT_EQ(ToInt8(-largest, StoredScale(largest, DType::kBF16)),
              -ToInt8(largest, StoredScale(largest, DType::kBF16)));
    EXPECT_GE(ToInt8(largest, StoredScale(largest, DType::kBF16)), 126);
  }
}

TEST(QuantizeMatrix, AScaleForEachRow) {
  const auto result = Quantize({{127, -63.4f, 0}, {0.5f, 1.27f, -1.27f}}, /*rows_per_scale=*/1);
  EXPECT_EQ(result.scales, (std::vector<float>{1, 1.27f / 127}));
  EXPECT_EQ(result.integers, (std::vector<int8_t>{127, -63, 0, 50, 127, -127}));
}

TEST(QuantizeMatrix, AScaleForAll) {
  const auto result = Quantize({{127, -63.4f, 0}, {0.5f, 1.6f, -1.27f}}, kAllOutputs);
  EXPECT_EQ(result.scales, (std::vector<float>{1, 1}));
  EXPECT_EQ(result.integers, (std::vector<int8_t>{127, -63, 0, 0, 2, -1}));
}

TEST(QuantizeMatrix, AScaleForNeighbours) {
  const auto result = Quantize({{127}, {-12.7f}, {2.54f}, {-254}, {1.27f}}, /*rows_per_scale=*/2);
  EXPECT_EQ(result.scales, (std::vector<float>{1, 1, 2, 2, 1.27f / 127}));
  EXPECT_EQ(result.integers, (std::vector<int8_t>{127, -13, 1, -127, 127}));
}

// 129.5 / 127 = 1.0197 is stored as 1.0234, by which readers multiply.
TEST(QuantizeMatrix, IntegersAreThoseOfTheStoredScale) {
  std::vector<float> row;
  for (int i = -200; i <= 200; ++i) row.push_back(static_cast<float>(i) * 0.6475f);
  const auto result = Quantize({row}, /*rows_per_scale=*/1, DType::kBF16);
  const float stored = result.scales[0];
  ASSERT_EQ(ToFloat(ToBF16(stored)), stored);
  bool differs = false;
  for (size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(result.integers[i], static_cast<int8_t>(std::nearbyint(row[i] / stored)));
    differs |= result.integers[i] != ToInt8(row[i], 129.5f / 127);
  }
  EXPECT_TRUE(differs);
}

TEST(QuantizeMatrix, ZerosAndHugeRows) {
  const float huge = std::numeric_limits<float>::max();
  const auto result = Quantize({{0, 0}, {huge, -huge / 4}}, /*rows_per_scale=*/1);
  EXPECT_EQ(result.scales[0], kSmallest);
  EXPECT_EQ(result.integers, (std::vector<int8_t>{0, 0, 127, -32}));
}

TEST(QuantizeMatrix, NonFiniteWeightsAreRefused) {
  for (const float x : {NAN, INFINITY}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kUnsupported,
                        [&] {
                          Quantize({{1, x}}, 1);
                        }),
                testing::HasSubstr("x.weight holds NaN or infinity"));
  }
}

TEST(QuantizeMatrix, SameWhateverTheThreads) {
  std::vector<std::vector<float>> rows(100);
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int k = 0; k < 1000; ++k) {
      rows[i].push_back(static_cast<float>(Uniform(3, i, k, 0)) - 0.5f);
    }
  }
  for (const int64_t rows_per_scale : {int64_t{1}, int64_t{16}, kAllOutputs}) {
    const auto one = Quantize(rows, rows_per_scale, DType::kF32, 1);
    const auto three = Quantize(rows, rows_per_scale, DType::kF32, 3);
    EXPECT_EQ(one.integers, three.integers);
    EXPECT_EQ(one.scales, three.scales);
  }
}

}  // namespace
}  // namespace godwit::quant::quantize_matrix_test
