#include "tensor/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_support.h"

namespace godwit::arena_test {
namespace {

TEST(Arena, PartsLieSideBySide) {
  Arena arena(64 + 128 + 64);
  const Buffer first = arena.Take(64), second = arena.Take(65), third = arena.Take(64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 64, 0u);
  EXPECT_EQ(second.data(), first.data() + 64);
  EXPECT_EQ(third.data(), first.data() + 64 + 128);  // to the last byte
  EXPECT_EQ(second.bytes(), 65);
  EXPECT_FALSE(second.is_mapped());
  EXPECT_EQ(std::to_integer<int>(third.data()[63]), 0);
  EXPECT_EQ(arena.Take(0).data(), nullptr);
}

TEST(Arena, LargeBufferHasMemoryOfItsOwn) {
  Arena arena(128);
  const Buffer large = arena.Take(129), first = arena.Take(64), second = arena.Take(65);
  EXPECT_EQ(large.bytes(), 129);
  EXPECT_EQ(second.bytes(), 65);
  second.data()[64] = large.data()[128] = std::byte{1};  // sanitizers check these
  EXPECT_NE(second.data(), first.data() + 64);
  EXPECT_EQ(Arena(0).Take(64).bytes(), 64);
}

TEST(Arena, PartsKeepItsMemory) {
  auto arena = std::make_unique<Arena>(int64_t{4} << 20);
  Buffer kept = arena->Take(int64_t{3} << 20);
  {
    const Buffer gone = arena->Take(64);
    gone.data()[0] = std::byte{2};
  }
  arena.reset();
  Buffer moved(8);
  moved = std::move(kept);
  std::fill_n(moved.data(), moved.bytes(), std::byte{1});
  EXPECT_EQ(std::to_integer<int>(moved.data()[moved.bytes() - 1]), 1);
}

TEST(Arena, ThreadsTakeDifferentParts) {
  constexpr size_t kThreads = 4, kEach = 200;
  Arena arena(kThreads * kEach * 128);
  std::vector<std::vector<Buffer>> parts(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<Buffer>& of_thread : parts) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < kEach; ++i) of_thread.push_back(arena.Take(100));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<const std::byte*> begins;
  for (const auto& of_thread : parts) {
    for (const Buffer& part : of_thread) begins.push_back(part.data());
  }
  std::ranges::sort(begins);
  for (size_t i = 0; i < begins.size(); ++i) ASSERT_EQ(begins[i], begins[0] + i * 128);
}

TEST(Arena, RefusesWhatCannotBe) {
  EXPECT_EQ(ErrorOf(ErrorKind::kMemory, [] { Arena arena(-1); }), "cannot allocate -1 bytes");
  ErrorOf(ErrorKind::kMemory, [] { Arena arena(int64_t{1} << 60); });
  Arena arena(64);
  EXPECT_EQ(ErrorOf(ErrorKind::kMemory, [&] { arena.Take(-1); }), "cannot allocate -1 bytes");
  ErrorOf(ErrorKind::kMemory, [&] { arena.Take(int64_t{1} << 60); });
}

}  // namespace
}  // namespace godwit::arena_test
