#include "base/own_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.h"
#include "base/open_file.h"
#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::own_folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(OwnFolderTest, IsMadeForThisUserAlone) {
  const TempFolder temp;
  for (const char* const path : {"a/b/c", "a/b/d/", "a/b/c"}) {
    MakeOwnFolder(temp.path() / path);
    EXPECT_TRUE(fs::is_directory(temp.path() / path)) << path;
  }
  EXPECT_EQ(fs::status(temp.path() / "a/b/c").permissions(), fs::perms::owner_all);
}

TEST(OwnFolderTest, SaysWhatIsInTheWay) {
  const TempFolder temp;
  temp.Write("file", "");
  EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { MakeOwnFolder(temp.path() / "file"); }),
              HasSubstr("expected a folder"));
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { MakeOwnFolder(temp.path() / "file/folder"); }),
              HasSubstr("make the folder"));
}

TEST(OwnFolderTest, OnlyPlainFilesAreOwn) {
  const TempFolder temp;
  temp.Write("file", "");
  fs::create_symlink("file", temp.path() / "link");
  EXPECT_TRUE(IsOwnFile(temp.path() / "file"));
  EXPECT_FALSE(IsOwnFile(temp.path() / "link"));
  EXPECT_FALSE(IsOwnFile(temp.path()));
  EXPECT_FALSE(IsOwnFile(temp.path() / "missing"));
}

TEST(FolderLockTest, HoldsOthersOff) {
  const TempFolder temp;
  const auto is_held = [&] {
    const OpenedFile file = OpenRegularFile(temp.path() / "lock");
    return flock(file.descriptor.get(), LOCK_EX | LOCK_NB) != 0;
  };
  {
    const FolderLock lock(temp.path());
    EXPECT_TRUE(is_held());
  }
  EXPECT_FALSE(is_held());
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { const FolderLock lock(temp.path() / "missing"); }),
              HasSubstr("write into the folder"));
}

}  // namespace
}  // namespace godwit::own_folder_test
