#include <cmath>

#include "kernels/kernel_test_support.h"

namespace godwit::kernels::convert_test {
namespace {

class ConvertTest : public IsaTest {
 protected:
  template <class Half>
  void TestWidensEveryBitPattern(void (*kernel)(const Half*, int64_t, float*) noexcept) {
    std::vector<Half> halves(65536);
    for (uint32_t bits = 0; bits < 65536; ++bits) halves[bits].bits = static_cast<uint16_t>(bits);
    std::vector<float> out(65536);
    kernel(halves.data(), 65536, out.data());
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      ASSERT_EQ(Bits(out[bits]), Bits(ToFloat(halves[bits]))) << bits;
    }
  }

  // Tests every sign, exponent and leading fraction, with tails around the ties of both formats.
  template <class Half>
  void TestNarrowsAsDefined(void (*kernel)(const float*, int64_t, Half*) noexcept,
                            Half (*definition)(float)) {
    std::vector<float> x;
    for (uint32_t high = 0; high < 65536; ++high) {
      for (const uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x3000u, 0x7fffu,
                                 0x8000u, 0x8001u, 0xf000u, 0xffffu}) {
        x.push_back(std::bit_cast<float>(high << 16 | low));
      }
    }
    const int64_t n = static_cast<int64_t>(x.size());
    std::vector<Half> out(n);
    kernel(x.data(), n, out.data());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(out[i].bits, definition(x[i]).bits) << std::hex << Bits(x[i]);
    }
  }

  template <class Half>
  void TestOddSizes(void (*widen)(const Half*, int64_t, float*) noexcept,
                    void (*narrow)(const float*, int64_t, Half*) noexcept) {
    RandomFloats random(1);
    for (const int64_t n : kOddSizes) {
      for (const int64_t offset : {0, 1, 3}) {
        Guarded<Half> half(n, offset), back(n, offset + 1);
        for (int64_t i = 0; i < n; ++i) half[i] = ToStorage<Half>(random());
        Guarded<float> wide(n, offset);
        widen(half.data(), n, wide.data());
        EXPECT_TRUE(wide.GuardsIntact());
        for (int64_t i = 0; i < n; ++i) EXPECT_EQ(wide[i], ToFloat(half[i]));
        narrow(wide.data(), n, back.data());
        EXPECT_TRUE(back.GuardsIntact());
        EXPECT_EQ(std::memcmp(back.data(), half.data(), n * sizeof(Half)), 0);
      }
    }
  }
};
GODWIT_FOR_EVERY_ISA(ConvertTest);

TEST_P(ConvertTest, WidensEveryBF16) { TestWidensEveryBitPattern<BF16>(table().bf16_to_f32); }
TEST_P(ConvertTest, WidensEveryF16) { TestWidensEveryBitPattern<F16>(table().f16_to_f32); }
TEST_P(ConvertTest, NarrowsToBF16) { TestNarrowsAsDefined<BF16>(table().f32_to_bf16, ToBF16); }
TEST_P(ConvertTest, NarrowsToF16) { TestNarrowsAsDefined<F16>(table().f32_to_f16, ToF16); }
TEST_P(ConvertTest, OddSizesOfBF16) {
  TestOddSizes<BF16>(table().bf16_to_f32, table().f32_to_bf16);
}
TEST_P(ConvertTest, OddSizesOfF16) { TestOddSizes<F16>(table().f16_to_f32, table().f32_to_f16); }

}  // namespace
}  // namespace godwit::kernels::convert_test
