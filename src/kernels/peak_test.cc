#include "kernels/peak.h"

#include <gtest/gtest.h>

#include <map>
#include <string_view>
#include <vector>

#include "kernels/dispatch.h"
#include "tensor/buffer.h"

namespace godwit::kernels::peak_test {
namespace {

// The count that a peak kernel returns is the base of all rates. Its speed is not tested: tests
// time nothing.
TEST(Peak, EveryInstructionSetCountsItsMultiplyAdds) {
  for (const Isa& isa : AllIsas()) {
    ASSERT_NE(isa.peak, nullptr) << isa.name;
    if (!isa.supported()) continue;
    for (const auto kernel : {isa.peak->f32, isa.peak->bf16, isa.peak->int8}) {
      if (kernel == nullptr) continue;
      EXPECT_EQ(kernel(0), 0) << isa.name;
      EXPECT_GT(kernel(1), 0) << isa.name;
      EXPECT_EQ(kernel(1000), 1000 * kernel(1)) << isa.name;
    }
    EXPECT_NE(isa.peak->f32, nullptr) << isa.name;
  }
}

// Multiply-adds of a round, counted by hand: instructions, times the register's lanes, times the
// products that a lane adds. There are twelve instructions, on Arm sixteen, in plain loops eight.
TEST(Peak, TheMultiplyAddsOfARoundAreThoseOfItsInstructions) {
  struct Counts {
    int64_t f32, bf16, int8;  // 0: no kernel of its own
  };
  const std::map<std::string_view, Counts> counts = {
      {"scalar", {8, 0, 0}},
      {"avx2", {12 * 8, 0, 12 * 16}},                           // VFMADD, VPMADDWD on 256 bits
      {"avx512", {12 * 16, 0, 12 * 32}},                        // the same on 512 bits
      {"avx512-vnni", {12 * 16, 0, 12 * 64}},                   // VPDPBUSD
      {"avx512-amx", {12 * 16, 12 * 256 * 32, 12 * 256 * 64}},  // TDPBF16PS, TDPBSUD
      {"avx512-bf16", {12 * 16, 12 * 32, 12 * 64}},             // VDPBF16PS
      {"neon", {16 * 4, 0, 16 * 8}},                            // FMLA; SMULL, SMULL2, ADDP, ADD
      {"neon-dot", {16 * 4, 0, 16 * 16}},                       // SDOT
      {"neon-i8mm", {16 * 4, 16 * 16, 16 * 32}},                // BFMMLA, USMMLA
  };
  for (const Isa& isa : AllIsas()) {
    if (!isa.supported()) continue;
    const auto of_a_round = [](auto kernel) { return kernel == nullptr ? 0 : kernel(1); };
    const Counts& expected = counts.at(isa.name);
    EXPECT_EQ(of_a_round(isa.peak->f32), expected.f32) << isa.name;
    EXPECT_EQ(of_a_round(isa.peak->bf16), expected.bf16) << isa.name;
    EXPECT_EQ(of_a_round(isa.peak->int8), expected.int8) << isa.name;
  }
}

TEST(Peak, ReadsEverything) {
  constexpr int64_t kBytes = 3 * 4096;
  const Buffer buffer(kBytes);
  auto* floats = reinterpret_cast<float*>(buffer.data());
  constexpr auto kFloats = kBytes / int64_t{sizeof(float)};
  for (int64_t i = 0; i < kFloats; ++i) floats[i] = 1.0f;
  for (const Isa& isa : AllIsas()) {
    if (!isa.supported()) continue;
    EXPECT_EQ(isa.peak->read(floats, kBytes), static_cast<float>(kFloats)) << isa.name;
  }
}

}  // namespace
}  // namespace godwit::kernels::peak_test
