#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace godwit::dtype_test {
namespace {

constexpr uint32_t kHalves = 65536;
constexpr uint16_t kLargestHalf = 0x7bff;

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }
F16 Half(uint32_t bits) { return {static_cast<uint16_t>(bits)}; }
bool IsNan(F16 x) { return (x.bits & 0x7fffu) > 0x7c00u; }

// The value by the formula of IEEE 754, for all but NaN.
double Value(F16 x) {
  const int exponent = (x.bits >> 10) & 0x1f;
  const int fraction = x.bits & 0x3ff;
  double magnitude = std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 0) magnitude = std::ldexp(fraction, -24);
  if (exponent == 31) magnitude = std::numeric_limits<double>::infinity();
  return (x.bits & 0x8000u) ? -magnitude : magnitude;
}

TEST(F16Test, EveryHalfHasItsValue) {
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    const F16 half = Half(bits);
    if (IsNan(half)) {
      EXPECT_TRUE(std::isnan(ToFloat(half))) << bits;
      EXPECT_EQ(std::signbit(ToFloat(half)), bits >= 0x8000u) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(ToFloat(half)), Value(half)) << bits;
    ASSERT_EQ(std::signbit(ToFloat(half)), bits >= 0x8000u) << bits;
  }
}

TEST(F16Test, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < kHalves; ++bits) {
    const F16 half = Half(bits);
    const uint32_t expected = IsNan(half) ? bits | 0x200u : bits;  // NaNs become quiet
    ASSERT_EQ(ToF16(ToFloat(half)).bits, expected);
  }
}

TEST(F16Test, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < kLargestHalf; ++bits) {
    const float low = ToFloat(Half(bits));
    const float high = ToFloat(Half(bits + 1));
    const float middle = 0.5f * (low + high);  // exact: f32 has more fraction bits
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    for (const uint32_t sign : {0u, 0x8000u}) {
      const float s = sign ? -1.0f : 1.0f;
      ASSERT_EQ(ToF16(s * middle).bits, sign | even) << bits;
      ASSERT_EQ(ToF16(s * std::nextafter(middle, low)).bits, sign | bits) << bits;
      ASSERT_EQ(ToF16(s * std::nextafter(middle, high)).bits, sign | (bits + 1)) << bits;
    }
  }
}

TEST(F16Test, OverflowsToInfinity) {
  EXPECT_EQ(ToF16(65504.0f).bits, kLargestHalf);
  EXPECT_EQ(ToF16(std::nextafter(65520.0f, 0.0f)).bits, kLargestHalf);
  EXPECT_EQ(ToF16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(ToF16(-65520.0f).bits, 0xfc00);
  EXPECT_EQ(ToF16(std::numeric_limits<float>::max()).bits, 0x7c00);
  EXPECT_EQ(ToF16(std::numeric_limits<float>::infinity()).bits, 0x7c00);
}

TEST(F16Test, UnderflowsToSignedZero) {
  EXPECT_EQ(ToF16(0x1p-25f).bits, 0);  // a tie, to even
  EXPECT_EQ(ToF16(-0x1p-25f).bits, 0x8000);
  EXPECT_EQ(ToF16(std::numeric_limits<float>::denorm_min()).bits, 0);
  EXPECT_EQ(ToF16(-std::numeric_limits<float>::min()).bits, 0x8000);
  EXPECT_EQ(ToF16(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
}

TEST(F16Test, KeepsNan) {
  for (const uint32_t bits : {0x7f800001u, 0x7fc00000u, 0x7fffffffu, 0xff800001u}) {
    const F16 half = ToF16(std::bit_cast<float>(bits));
    EXPECT_TRUE(IsNan(half)) << bits;
    EXPECT_EQ(half.bits >> 15, bits >> 31);
  }
}

TEST(BF16Test, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const BF16 x{static_cast<uint16_t>(bits)};
    const bool nan = (bits & 0x7fffu) > 0x7f80u;
    ASSERT_EQ(Bits(ToFloat(x)), bits << 16);
    ASSERT_EQ(ToBF16(ToFloat(x)).bits, nan ? bits | 0x40u : bits);
  }
}

TEST(BF16Test, RoundsToTheNearestAndTiesToEven) {
  for (uint32_t bits = 0; bits < 0x7f80u; ++bits) {
    const uint32_t middle = (bits << 16) | 0x8000u;
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(ToBF16(std::bit_cast<float>(middle)).bits, even);
    ASSERT_EQ(ToBF16(std::bit_cast<float>(middle - 1)).bits, bits);
    ASSERT_EQ(ToBF16(std::bit_cast<float>(middle + 1)).bits, bits + 1);
  }
}

TEST(BF16Test, NanDoesNotBecomeInfinity) {
  EXPECT_EQ(ToBF16(std::bit_cast<float>(0x7f800001u)).bits, 0x7fc0);
  EXPECT_EQ(ToBF16(std::bit_cast<float>(0xffffffffu)).bits, 0xffff);
}

TEST(DTypeTest, SizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kF32), 4u);
  EXPECT_EQ(SizeOf(DType::kBF16), 2u);
  EXPECT_EQ(SizeOf(DType::kU8), 1u);
  EXPECT_EQ(SizeOf(DType::kI64), 8u);
  EXPECT_EQ(Name(DType::kF16), "F16");
  EXPECT_EQ(Name(DType::kI32), "I32");
}

}  // namespace
}  // namespace godwit::dtype_test
