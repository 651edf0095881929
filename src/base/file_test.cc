#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::file_test {
namespace {

using ::testing::HasSubstr;

// Expects an error with the whole path, however long, because the user needs it.
void ExpectError(const std::filesystem::path& path, size_t max_bytes, ErrorKind kind,
                 const std::string& reason) {
  const std::string message = ErrorOf(kind, [&] { ReadTextFile(path, max_bytes); });
  EXPECT_THAT(message, HasSubstr(path.native() + ": "));
  EXPECT_THAT(message, HasSubstr(reason));
}

TEST(ReadTextFile, ReturnsTheBytesAsTheyAre) {
  const TempFolder folder;
  const std::string text("a\r\n\0\xff", 5);
  EXPECT_EQ(ReadTextFile(folder.Write("a", text), 5), text);
  EXPECT_EQ(ReadTextFile(folder.Write("b", ""), 0), "");
}

TEST(ReadTextFile, RefusesWhatIsTooLarge) {
  const TempFolder folder;
  ExpectError(folder.Write("a", "123456"), 5, ErrorKind::kFormat, "6 bytes, expected at most 5");
}

TEST(ReadTextFile, RefusesAMissingFile) {
  const TempFolder folder;
  ExpectError(folder.path() / std::string(200, 'n'), 10, ErrorKind::kIo, "No such file");
}

TEST(ReadTextFile, RefusesAFolder) {
  const TempFolder folder;
  ExpectError(folder.path(), 10, ErrorKind::kIo, "found a folder");
}

TEST(ReadTextFile, RefusesAPipeWithoutHanging) {
  const TempFolder folder;
  const auto path = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  ExpectError(path, 10, ErrorKind::kIo, "expected a regular file");
}

TEST(IsListed, SaysWhetherThereIsSomethingToOpen) {
  const TempFolder folder;
  EXPECT_TRUE(IsListed(folder.Write("a", "")));
  EXPECT_TRUE(IsListed(folder.path()));
  EXPECT_FALSE(IsListed(folder.path() / "none"));
  EXPECT_FALSE(IsListed(folder.path() / "a" / "b"));  // its parent is a file
  std::filesystem::create_symlink("none", folder.path() / "link");
  EXPECT_TRUE(IsListed(folder.path() / "link"));
  EXPECT_TRUE(IsListed(folder.path() / std::string(1000, 'x')));  // cannot be examined
}

}  // namespace
}  // namespace godwit::file_test
