#include "kernels/peak.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/dispatch.h"
#include "tensor/buffer.h"

namespace godwit::kernels {
namespace {

// What a peak kernel says it did is what rates are computed from. That it did it fast is not
// tested: tests time nothing.
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
}  // namespace godwit::kernels
