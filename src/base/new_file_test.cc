#include "base/new_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::new_file_test {
namespace {

namespace fs = std::filesystem;

void Write(NewFile& file, std::string_view text) { file.Write(std::as_bytes(std::span(text))); }

TEST(NewFileTest, IsThereWholeOrNotAtAll) {
  const TempFolder temp;
  const fs::path target = temp.path() / "x";
  {
    NewFile file(target);
    Write(file, "half");
    file.Sync();
    EXPECT_FALSE(fs::exists(target));
  }
  EXPECT_TRUE(fs::is_empty(temp.path()));
  for (const std::string text : {"first", "second"}) {
    NewFile file(target);
    Write(file, text);
    file.PadTo(8);
    EXPECT_EQ(file.size(), 8);
    file.Commit();
    file.DropFromPageCache();
    EXPECT_EQ(ReadTextFile(target, 100), text + std::string(8 - text.size(), '\0'));
  }
  EXPECT_EQ(fs::status(target).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(NewFileTest, MayLieWhereTheProcessIs) {
  const TempFolder temp;
  const fs::path before = fs::current_path();
  fs::current_path(temp.path());
  NewFile file("x");
  Write(file, "all");
  EXPECT_NO_THROW(file.Commit());
  fs::current_path(before);
  EXPECT_EQ(ReadTextFile(temp.path() / "x", 100), "all");
}

TEST(NewFileTest, IsSharedLikeAnother) {
  const TempFolder temp;
  const fs::path other = temp.Write("other", "");
  fs::permissions(other, fs::perms::owner_all | fs::perms::group_read);
  NewFile file(temp.path() / "x");
  file.CopyPermissions(other);
  file.Commit();
  EXPECT_EQ(fs::status(temp.path() / "x").permissions(),
            fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
  ErrorOf(ErrorKind::kIo,
          [&] { NewFile(temp.path() / "y").CopyPermissions(temp.path() / "missing"); });
}

// A file that is being written is never taken for abandoned, from its first moment on.
TEST(NewFileTest, StaysWhileOthersSweep) {
  const TempFolder temp;
  std::atomic<bool> done = false;
  std::thread sweeper([&] {
    while (!done) RemoveAbandoned(temp.path());
  });
  for (int i = 0; i < 2000; ++i) {
    NewFile file(temp.path() / "x");
    Write(file, std::to_string(i));
    EXPECT_NO_THROW(file.Commit()) << i;
  }
  done = true;
  sweeper.join();
}

TEST(NewFileTest, OnlyWhatIsAbandonedGoes) {
  const TempFolder temp;
  NewFile open(temp.path() / "open");
  temp.Write("left.1-0.part", "of a process that was killed");
  temp.Write("other", "");
  RemoveAbandoned(temp.path(), "right");
  EXPECT_TRUE(fs::exists(temp.path() / "left.1-0.part"));
  RemoveAbandoned(temp.path(), "left");
  EXPECT_FALSE(fs::exists(temp.path() / "left.1-0.part"));
  EXPECT_TRUE(fs::exists(temp.path() / "other"));
  open.Commit();
  RemoveAbandoned(temp.path() / "missing");
}

}  // namespace
}  // namespace godwit::new_file_test
