#include "ops/hadamard_heads.h"

#include "ops/test_support.h"

namespace godwit::ops::hadamard_heads_test {
namespace {

class HadamardHeadsTest : public OpsTest {};

TEST_P(HadamardHeadsTest, TurnsEachHeadAndTurnsItBack) {
  GappedMatrix x(300, 3 * 32, 1);
  const GappedMatrix before = x;
  HadamardHeads(On(three_), 32, x.view());
  for (int64_t row = 0; row < 300; ++row) {
    for (int64_t head = 0; head < 3; ++head) {
      double sum = 0;  // the first row of the matrix has ones alone
      for (int64_t d = 0; d < 32; ++d) sum += double{before.At(row, head * 32 + d)};
      ASSERT_NEAR(x.At(row, head * 32), sum / std::sqrt(32.0), 32 * kEpsilon);
    }
  }
  HadamardHeads(On(one_), 32, x.view());
  for (int64_t row = 0; row < 300; ++row) {
    for (int64_t col = 0; col < 96; ++col) {
      ASSERT_NEAR(x.At(row, col), before.At(row, col), 32 * kEpsilon);
    }
  }
  EXPECT_TRUE(x.GapsIntact());
}

GODWIT_FOR_EVERY_ISA(HadamardHeadsTest);

}  // namespace
}  // namespace godwit::ops::hadamard_heads_test
