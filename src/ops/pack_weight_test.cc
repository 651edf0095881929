#include "ops/pack_weight.h"

#include "base/error.h"
#include "ops/test_support.h"

namespace godwit::ops::pack_weight_test {
namespace {

TEST(UnpackRowTest, GivesBackWhatWasPacked) {
  ThreadPool pool(2);
  for (const DType dtype : kFloatTypes) {
    for (const int64_t outputs : {1, 63, 64, 65, 200}) {
      for (const int64_t inputs : {1, 2, 7, 64, 129}) {
        const RawWeight raw(dtype, outputs, inputs, 11);
        const Weight weight = raw.Pack(pool);
        EXPECT_TRUE(weight.bias.empty());
        std::vector<float> row(static_cast<size_t>(inputs) + 1, kNan);
        for (int64_t i = 0; i < outputs; ++i) {
          UnpackRow(weight, i, row.data());
          for (int64_t k = 0; k < inputs; ++k) {
            ASSERT_EQ(row[k], raw.At(i, k)) << Name(dtype) << " row " << i;
          }
          ASSERT_TRUE(std::isnan(row.back()));
        }
      }
    }
  }
}

// Threads take two panels at a time here, and one panel is left over.
TEST(UnpackRowTest, GivesBackManyPanels) {
  ThreadPool pool(2);
  constexpr int64_t kOutputs = 280, kInputs = 3001;
  const RawWeight raw(DType::kF32, kOutputs, kInputs, 12);
  const Weight weight = raw.Pack(pool);
  std::vector<float> row(kInputs);
  for (int64_t i = 0; i < kOutputs; ++i) {
    UnpackRow(weight, i, row.data());
    for (int64_t k = 0; k < kInputs; ++k) {
      ASSERT_EQ(row[k], raw.At(i, k)) << "row " << i;
    }
  }
}

std::vector<float> Unpacked(const Weight& weight, int64_t output) {
  std::vector<float> row(weight.inputs);
  UnpackRow(weight, output, row.data());
  return row;
}

TEST(PackWeightTest, WidensAndRounds) {
  ThreadPool pool(2);
  for (const DType dtype : kFloatTypes) {
    const RawWeight raw(dtype, 130, 35, 1);
    const Weight wide = raw.PackAs(pool, DType::kF32);
    const Weight narrow = raw.PackAs(pool, DType::kBF16);
    EXPECT_EQ(wide.dtype, DType::kF32);
    EXPECT_EQ(narrow.dtype, DType::kBF16);
    for (int64_t i = 0; i < 130; ++i) {
      const auto exact = Unpacked(wide, i), rounded = Unpacked(narrow, i);
      for (int64_t k = 0; k < 35; ++k) {
        ASSERT_EQ(exact[k], raw.At(i, k));
        ASSERT_EQ(rounded[k], ToFloat(ToBF16(raw.At(i, k))));
      }
    }
  }
}

TEST(PackWeightTest, QuantizesEachOutput) {
  ThreadPool pool(2);
  for (const DType dtype : kFloatTypes) {
    for (const int64_t outputs : {1, 64, 130}) {
      const RawWeight raw(dtype, outputs, 35, 2);
      const Weight weight = raw.PackAs(pool, DType::kI8);
      EXPECT_EQ(weight.dtype, DType::kI8);
      ASSERT_EQ(std::ssize(weight.scales), outputs);
      EXPECT_EQ(PackedBytes(DType::kI8, outputs, 35), weight.panels.bytes() + 4 * outputs);
      for (int64_t i = 0; i < outputs; ++i) {
        float largest = 0;
        for (int64_t k = 0; k < 35; ++k) largest = std::max(largest, std::fabs(raw.At(i, k)));
        const float scale = weight.scales[i];
        ASSERT_EQ(scale, largest / 127);
        const auto row = Unpacked(weight, i);
        for (int64_t k = 0; k < 35; ++k) {
          ASSERT_NEAR(row[k], raw.At(i, k), scale * 0.50001f);
        }
      }
    }
  }
}

TEST(PackWeightTest, IntegersStayOrBecomeFloats) {
  ThreadPool pool(1);
  std::vector<int8_t> integers;
  for (int i = 0; i < 70 * 9; ++i) integers.push_back(static_cast<int8_t>(i * 31 % 256 - 128));
  std::vector<float> scales;
  for (int i = 0; i < 70; ++i) scales.push_back(0.001f * static_cast<float>(i + 1));
  for (const DType storage : {DType::kI8, DType::kF32, DType::kBF16}) {
    const Weight weight = PackWeight(
        pool, DType::kI8, 70, 9,
        [&](int64_t output) -> const void* { return integers.data() + output * 9; }, storage,
        scales);
    EXPECT_EQ(weight.dtype, storage);
    EXPECT_EQ(weight.scales, storage == DType::kI8 ? scales : std::vector<float>());
    for (int64_t i = 0; i < 70; ++i) {
      const auto row = Unpacked(weight, i);
      for (int64_t k = 0; k < 9; ++k) {
        const float want = scales[i] * integers[i * 9 + k];
        ASSERT_EQ(row[k], storage == DType::kBF16 ? ToFloat(ToBF16(want)) : want);
      }
    }
  }
}

// A weight that is not finite makes its outputs NaN, as it would in float.
TEST(PackWeightTest, NonFiniteOutputHasScaleNan) {
  ThreadPool pool(1);
  const std::vector<float> rows = {0, 0, 1, kNan, kernels::kInfinity, 2};
  const Weight weight = PackWeight(
      pool, DType::kF32, 3, 2, [&](int64_t output) { return rows.data() + output * 2; },
      DType::kI8);
  EXPECT_EQ(weight.scales[0], 0.0f);
  EXPECT_TRUE(std::isnan(weight.scales[1]));
  EXPECT_TRUE(std::isnan(weight.scales[2]));
}

TEST(PackWeightTest, TakesPanelsFromAnArena) {
  ThreadPool pool(2);
  Arena arena(int64_t{1} << 20);
  const std::byte* next = arena.Take(64).data() + 64;
  for (const DType storage : {DType::kF32, DType::kBF16, DType::kI8, DType::kGrouped}) {
    const RawWeight raw(DType::kF32, 130, 35, 1);
    const Weight weight = raw.PackAs(pool, storage, &arena), alone = raw.PackAs(pool, storage);
    EXPECT_EQ(weight.panels.data(), next) << Name(storage);
    next += weight.panels.bytes();
    for (int64_t i = 0; i < 130; ++i) ASSERT_EQ(Unpacked(weight, i), Unpacked(alone, i));
  }
}

TEST(PackWeightTest, RefusesInt8ThatCouldOverflow) {
  ThreadPool pool(1);
  const std::vector<int8_t> row(static_cast<size_t>(kernels::kMaxDepthI8) + 1, 1);
  const auto pack = [&](int64_t inputs) {
    return PackWeight(
        pool, DType::kI8, 1, inputs, [&](int64_t) { return row.data(); }, DType::kI8);
  };
  pack(kernels::kMaxDepthI8);
  EXPECT_THROW(pack(kernels::kMaxDepthI8 + 1), Error);
}

}  // namespace
}  // namespace godwit::ops::pack_weight_test
