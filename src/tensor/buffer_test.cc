#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <utility>

#include "base/error.h"
#include "base/test_support.h"

namespace godwit {
namespace {

TEST(Buffer, IsZeroAndAligned) {
  const Buffer buffer(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(std::to_integer<int>(buffer.data()[i]), 0);
  EXPECT_EQ(Buffer(0).data(), nullptr);
}

TEST(Buffer, RefusesWhatCannotBe) {
  EXPECT_EQ(ErrorOf(ErrorKind::kMemory, [] { Buffer(-1); }), "cannot allocate -1 bytes");
  ErrorOf(ErrorKind::kMemory, [] { Buffer(int64_t{1} << 60); });
}

TEST(Buffer, Moves) {
  Buffer buffer(100);
  const std::byte* data = buffer.data();
  Buffer moved = std::move(buffer);
  EXPECT_EQ(buffer.data(), nullptr);  // NOLINT: the state after a move is part of the contract
  EXPECT_EQ(moved.data(), data);
  EXPECT_EQ(moved.bytes(), 100);
}

}  // namespace
}  // namespace godwit
