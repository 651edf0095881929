#include "kv/kv_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/test_folder.h"
#include "base/test_support.h"
#include "kv/kv_file_test_support.h"

namespace godwit::kv_file_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBlock = KvFile::kAlignment;
constexpr int64_t kPageBytes = 4 * kBlock;

// The status of the KV file that this process has open.
std::optional<struct stat> FindFile() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const auto target = std::filesystem::read_symlink(entry.path(), ignored).string();
    struct stat status;
    if (target.find("godwit-") != std::string::npos && target.ends_with("(deleted)") &&
        stat(entry.path().c_str(), &status) == 0) {
      return status;
    }
  }
  return {};
}

// A file with memory for some of its pages.
struct Tier {
  explicit Tier(int64_t pages_in_memory, int64_t page_bytes = kPageBytes)
      : memory(std::make_shared<KvBudget>(pages_in_memory * page_bytes)),
        file(std::make_shared<KvFile>(folder.path(), int64_t{1} << 30, memory)) {}

  TempFolder folder;
  std::shared_ptr<KvBudget> memory;
  std::shared_ptr<KvFile> file;
};

std::vector<KvFile::Page*> All(FilePages& pages, size_t count) {
  std::vector<KvFile::Page*> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = &pages[i];
  return all;
}

bool LiesInMemory(const KvFile::Page& page) {
  std::vector<unsigned char> in_core(page.bytes / kBlock);
  mincore(page.data, static_cast<size_t>(page.bytes), in_core.data());
  return std::ranges::any_of(in_core, [](unsigned char c) { return (c & 1) != 0; });
}

TEST(KvFileTest, PagesHoldWhatWasWrittenThoughMemoryIsShort) {
  constexpr size_t kPages = 40;
  const Tier tier(5);
  FilePages pages(tier.file, kPages, kPageBytes);
  const auto all = All(pages, kPages);
  for (size_t i = 0; i < kPages; ++i) {
    tier.file->BeginTurn();
    tier.file->WillWrite({&all[i], 1});
    EXPECT_EQ(all[i]->data[7], std::byte{0}) << "nobody has written it";
    std::memset(all[i]->data, static_cast<int>(i), kPageBytes);
    EXPECT_LE(tier.file->BytesInMemory(all), tier.memory->bytes());
  }
  for (size_t i = 0; i < kPages; ++i) {
    tier.file->BeginTurn();
    EXPECT_EQ(tier.file->WillRead({&all[i], 1}, 0, kPageBytes), kPageBytes);
    EXPECT_EQ(tier.file->WillRead({&all[i], 1}, 0, kPageBytes), 0) << "it has come";
    EXPECT_EQ(all[i]->data[0], static_cast<std::byte>(i));
    EXPECT_EQ(all[i]->data[kPageBytes - 1], static_cast<std::byte>(i));
  }
  // Pages come without an announcement, too.
  EXPECT_EQ(all[3]->data[kBlock], std::byte{3});
}

TEST(KvFileTest, EvictedPagesLeaveMemory) {
  constexpr int64_t kTmpfs = 0x01021994;
  const Tier tier(2);
  struct statfs status;
  if (statfs(tier.folder.path().c_str(), &status) == 0 && status.f_type == kTmpfs) {
    GTEST_SKIP() << "files in memory cannot leave it";
  }
  FilePages pages(tier.file, 3, kPageBytes);
  const auto all = All(pages, 3);
  for (KvFile::Page* page : all) {
    tier.file->BeginTurn();
    tier.file->WillWrite({&page, 1});
    std::memset(page->data, 1, kPageBytes);
  }
  EXPECT_FALSE(LiesInMemory(*all[0])) << "the first to come is the first to go";
  EXPECT_TRUE(LiesInMemory(*all[2]));
}

TEST(KvFileTest, LeastRecentlyUsedPageGoesFirst) {
  const Tier tier(3);
  FilePages pages(tier.file, 4, kPageBytes);
  const auto all = All(pages, 4);
  for (const size_t i : {0, 1, 2, 0, 3}) {
    tier.file->BeginTurn();
    tier.file->WillRead({&all[i], 1}, 0, kPageBytes);
  }
  EXPECT_EQ(tier.file->WillRead({&all[0], 1}, 0, kPageBytes), 0) << "it was used again";
  EXPECT_EQ(tier.file->WillRead({&all[1], 1}, 0, kPageBytes), kPageBytes);
}

TEST(KvFileTest, PagesOfATurnStayUntilTheNext) {
  const Tier tier(2);
  FilePages pages(tier.file, 6, kPageBytes);
  const auto all = All(pages, 6);
  EXPECT_EQ(tier.file->WillRead(all, 0, kPageBytes), 6 * kPageBytes);
  EXPECT_EQ(tier.file->BytesInMemory(all), 6 * kPageBytes);
  tier.file->BeginTurn();
  EXPECT_LE(tier.file->BytesInMemory(all), tier.memory->bytes());
}

// An index, for example, takes memory from the same budget.
TEST(KvFileTest, OtherUsersOfTheBudgetShrinkItsMemory) {
  const Tier tier(4);
  FilePages pages(tier.file, 5, kPageBytes);
  const auto all = All(pages, 5);
  tier.file->WillWrite(std::span(all).first(4));
  EXPECT_EQ(tier.file->BytesInMemory(all), 4 * kPageBytes);
  ASSERT_TRUE(tier.memory->Take(3 * kPageBytes));
  tier.file->BeginTurn();
  tier.file->WillWrite(std::span(all).last(1));
  EXPECT_EQ(tier.file->BytesInMemory(all), kPageBytes);
  EXPECT_EQ(tier.file->WillRead(std::span(all).last(1), 0, kPageBytes), 0);
}

// Reads a head's part of a page, and pages so large that a bit stands for two pages of the system.
TEST(KvFileTest, OnlyTheReadPartOfAPageIsLoaded) {
  for (const int64_t blocks : {int64_t{1}, int64_t{4}, int64_t{63}, int64_t{64}, int64_t{67}}) {
    const int64_t bytes = blocks * kBlock, step = blocks > 64 ? 2 * kBlock : kBlock;
    const Tier tier(10, bytes);
    FilePages pages(tier.file, 1, bytes);
    const auto all = All(pages, 1);
    EXPECT_EQ(tier.file->WillRead(all, 0, 1), step);
    EXPECT_EQ(tier.file->WillRead(all, 0, step), 0);
    const int64_t last = bytes % step == 0 ? step : bytes % step;
    EXPECT_EQ(tier.file->WillRead(all, bytes - 1, bytes), blocks == 1 ? 0 : last);
    EXPECT_EQ(tier.file->BytesInMemory(all), blocks == 1 ? step : step + last);
    tier.file->WillRead(all, 0, bytes);
    EXPECT_EQ(tier.file->BytesInMemory(all), bytes);
  }
}

TEST(KvFileTest, HasNoNameAndNoReader) {
  const TempFolder folder;
  const auto memory = std::make_shared<KvBudget>(1 << 20);
  for (const auto& path : {folder.path(), folder.path() / "godwit-name"}) {
    EXPECT_FALSE(FindFile());
    const KvFile file(path, 0, memory);
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
    ASSERT_TRUE(FindFile());
    EXPECT_EQ(FindFile()->st_mode & 0777, 0600u);
    EXPECT_GT(file.budget()->bytes(), 0) << "what the disk has left";
  }
}

TEST(KvFileTest, TouchesNoFileThatIsThere) {
  const TempFolder folder{{"mine", "text"}};
  const auto memory = std::make_shared<KvBudget>(1 << 20);
  const auto message = [&](const std::filesystem::path& path) {
    return ErrorOf(ErrorKind::kIo, [&] { KvFile(path, 1 << 20, memory); });
  };
  EXPECT_THAT(message(folder.path() / "mine"), HasSubstr("mine: cannot make a file"));
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "mine"), 4u);
  EXPECT_THAT(message(folder.path() / "no" / "folder"), HasSubstr("No such file"));
}

TEST(KvFileTest, SpaceIsReservedBeforeUseAndReleased) {
  const Tier tier(2);
  int64_t size = 0;
  for (int round = 0; round < 3; ++round) {
    const FilePages pages(tier.file, 8, kPageBytes);
    EXPECT_GE(FindFile()->st_blocks * 512, 8 * kPageBytes) << "also where nothing was written";
    if (round == 0) size = FindFile()->st_size;
  }
  EXPECT_EQ(FindFile()->st_size, size) << "the room that was given back comes first";
  EXPECT_LT(FindFile()->st_blocks * 512, 8 * kPageBytes);
}

TEST(KvFileTest, AFullDiskIsAnError) {
  const Tier tier(2);
  FilePages before(tier.file, 2, kPageBytes);
  {
    const FullDisk full(2 * kPageBytes);
    EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { FilePages(tier.file, 2, kPageBytes); }),
                HasSubstr("the KV cache needs another 32.0 KiB in "));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kMemory, [&] { tier.file->RequireSpace(int64_t{1} << 60); }),
              HasSubstr("are free on its disk"));
  std::memset(HostPointer(before.data()), 1, 2 * kPageBytes);
  FilePages after(tier.file, 2, kPageBytes);
  std::memset(HostPointer(after.data()), 2, 2 * kPageBytes);
  EXPECT_EQ(HostPointer(before.data())[0], std::byte{1});
}

}  // namespace
}  // namespace godwit::kv_file_test
