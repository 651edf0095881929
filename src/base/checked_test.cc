#include "base/checked.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace godwit::checked_test {
namespace {

constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();
constexpr int64_t kMaxI64 = std::numeric_limits<int64_t>::max();
constexpr int64_t kMinI64 = std::numeric_limits<int64_t>::min();

TEST(CheckedTest, GivesExactResultsUpToTheLimit) {
  static_assert(CheckedAdd<uint64_t>(2, 3) == 5u);
  EXPECT_EQ(CheckedAdd<uint64_t>(kMaxU64 - 1, 1), kMaxU64);
  EXPECT_EQ(CheckedMul<uint64_t>(kMaxU64, 1), kMaxU64);
  EXPECT_EQ(CheckedMul<uint64_t>(uint64_t{1} << 32, (uint64_t{1} << 32) - 1),
            kMaxU64 - 0xffffffffu);
  EXPECT_EQ(CheckedMul<int64_t>(kMaxI64, -1), -kMaxI64);
  EXPECT_EQ(CheckedMul<uint64_t>(kMaxU64, 0), 0u);
}

TEST(CheckedTest, RefusesWhatDoesNotFit) {
  EXPECT_EQ(CheckedAdd<uint64_t>(kMaxU64, 1), std::nullopt);
  EXPECT_EQ(CheckedMul<uint64_t>(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(CheckedAdd<int64_t>(kMaxI64, 1), std::nullopt);
  EXPECT_EQ(CheckedAdd<int64_t>(kMinI64, -1), std::nullopt);
  EXPECT_EQ(CheckedMul<int64_t>(kMinI64, -1), std::nullopt);
  EXPECT_EQ(CheckedMul<uint8_t>(16, 16), std::nullopt);
}

}  // namespace
}  // namespace godwit::checked_test
