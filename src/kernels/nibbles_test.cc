#include "kernels/kernel_test_support.h"

namespace godwit::kernels::nibbles_test {
namespace {

class NibblesTest : public IsaTest {};
GODWIT_FOR_EVERY_ISA(NibblesTest);

TEST_P(NibblesTest, EachHalfOfAByteIsLookedUp) {
  RandomFloats random(1);
  uint8_t names[16];
  for (uint8_t& name : names) name = static_cast<uint8_t>(random.Integer(0, 255));
  for (const int64_t bytes : {0, 64, 128, 640, 4096, 8192 + 64}) {
    Guarded<uint8_t> nibbles(bytes), out(2 * bytes);
    for (int64_t i = 0; i < bytes; ++i) nibbles[i] = static_cast<uint8_t>(random.Integer(0, 255));
    table().widen_nibbles(
        {.nibbles = nibbles.data(), .bytes = bytes, .table = names, .out = out.data()});
    for (int64_t i = 0; i < 2 * bytes; ++i) {
      const NibblePlace place = NibbleAt(2 * bytes, i);
      ASSERT_EQ(out[i], names[nibbles[place.byte] >> place.shift & 15]) << i << " of " << bytes;
    }
    EXPECT_TRUE(out.GuardsIntact());
  }
}

// Levels of Max 1960: each is the mean of the numbers nearest to it.
TEST(NibbleLevelsTest, AreThoseOfNormalNumbers) {
  const double kDeviation = 127 / 2.733;
  const auto phi = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); };
  const auto below = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(kNibbleLevels[i], -kNibbleLevels[15 - i]);
    const double low = i == 0 ? -10 : (kNibbleLevels[i - 1] + kNibbleLevels[i]) / 2.0 / kDeviation;
    const double high = i == 15 ? 10 : (kNibbleLevels[i] + kNibbleLevels[i + 1]) / 2.0 / kDeviation;
    const double mean = (phi(low) - phi(high)) / (below(high) - below(low));
    EXPECT_NEAR(kNibbleLevels[i], mean * kDeviation, 1) << i;
  }
}

}  // namespace
}  // namespace godwit::kernels::nibbles_test
