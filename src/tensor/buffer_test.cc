#include "tensor/buffer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/system/advice.h"
#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::buffer_test {
namespace {

TEST(Buffer, IsZeroAndAligned) {
  const Buffer buffer(100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(std::to_integer<int>(buffer.data()[i]), 0);
  EXPECT_EQ(Buffer(0).data(), nullptr);
}

// Large buffers begin at a large page of the system, at any size and side by side.
TEST(Buffer, LargeOnesBeginAtALargePage) {
  constexpr int64_t kLarge = int64_t{2} << 20;
  std::vector<Buffer> buffers;
  for (const int64_t bytes : {kLarge, kLarge + 1, 3 * kLarge - 4097, kLarge, 5 * kLarge}) {
    Buffer& buffer = buffers.emplace_back(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kLarge, 0u) << bytes;
    EXPECT_EQ(std::to_integer<int>(buffer.data()[0]), 0);
    EXPECT_EQ(std::to_integer<int>(buffer.data()[bytes - 1]), 0);
    buffer.data()[bytes - 1] = std::byte{1};
  }
  buffers.erase(buffers.begin() + 1);
  for (const Buffer& buffer : buffers) {
    EXPECT_EQ(std::to_integer<int>(buffer.data()[buffer.bytes() - 1]), 1);
  }
}

// Whole pages become zeros again, which only the system does. Neighbours keep what they hold.
TEST(Buffer, GivesWholePagesBack) {
  const auto page = static_cast<int64_t>(PageBytes());
  const auto whole = std::make_shared<const Buffer>(8 * page);
  std::memset(whole->data(), 7, static_cast<size_t>(whole->bytes()));
  const auto at = [&](int64_t i) { return std::to_integer<int>(whole->data()[i]); };
  Buffer part(whole, page + 64, 3 * page);
  part.GiveBack();
  EXPECT_EQ(part.data(), nullptr);
  EXPECT_EQ(part.bytes(), 0);
  EXPECT_EQ(at(2 * page - 1), 7);
  EXPECT_EQ(at(2 * page), 0);
  EXPECT_EQ(at(4 * page - 1), 0);
  EXPECT_EQ(at(4 * page), 7);
  Buffer small(whole, 5 * page + 64, 128);  // no whole page
  small.GiveBack();
  EXPECT_EQ(small.bytes(), 0);
  EXPECT_EQ(at(5 * page + 64), 7);
  Buffer alone(2 * page), none;
  alone.GiveBack();
  none.GiveBack();
  EXPECT_EQ(alone.data(), nullptr);
}

TEST(Buffer, GivesPagesOfAFileBackWhichOthersReadAgain) {
  const TempFolder folder;
  const auto page = static_cast<int64_t>(PageBytes());
  const std::string content(static_cast<size_t>(3 * page), 'a');
  const auto file = std::make_shared<const MappedFile>(folder.Write("f", content));
  Buffer buffer(file, file->Span());
  buffer.GiveBack();
  EXPECT_FALSE(buffer.is_mapped());
  EXPECT_EQ(std::to_integer<char>(file->Span()[static_cast<size_t>(page)]), 'a');
}

TEST(Buffer, RefusesWhatCannotBe) {
  EXPECT_EQ(ErrorOf(ErrorKind::kMemory, [] { Buffer(-1); }), "cannot allocate -1 bytes");
  ErrorOf(ErrorKind::kMemory, [] { Buffer(int64_t{1} << 60); });
}

TEST(Buffer, KeepsTheFileMappedOfWhichItIsAPart) {
  const TempFolder folder;
  std::string content(71, 'a');
  content.replace(64, 7, "weights");
  auto file = std::make_shared<const MappedFile>(folder.Write("f", content));
  Buffer buffer(file, file->Span().subspan(64));
  EXPECT_EQ(buffer.data(), file->Span().data() + 64);
  EXPECT_EQ(buffer.bytes(), 7);
  EXPECT_TRUE(buffer.is_mapped());
  EXPECT_FALSE(Buffer(64).is_mapped());
  file.reset();
  Buffer moved(8);
  moved = std::move(buffer);
  EXPECT_FALSE(buffer.is_mapped());  // NOLINT: the memory that `moved` had
  EXPECT_TRUE(moved.is_mapped());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(moved.data()), 7), "weights");
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
}  // namespace godwit::buffer_test
