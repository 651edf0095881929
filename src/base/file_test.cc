#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace godwit {
namespace {

using ::testing::HasSubstr;

class ReadTextFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("godwit_file_") + test->name() + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path Write(const std::string& text) {
    const auto path = folder_ / "file.txt";
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::filesystem::path folder_;
};

void ExpectError(const std::filesystem::path& path, size_t max_bytes, ErrorKind kind,
                 const std::string& reason) {
  try {
    ReadTextFile(path, max_bytes);
    FAIL() << "no error for " << path;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    EXPECT_THAT(error.what(), HasSubstr(reason));
    EXPECT_THAT(error.what(), HasSubstr(path.native()));
  }
}

TEST_F(ReadTextFileTest, ReturnsTheBytesAsTheyAre) {
  const std::string text("a\r\n\0\xff", 5);
  EXPECT_EQ(ReadTextFile(Write(text), 5), text);
  EXPECT_EQ(ReadTextFile(Write(""), 0), "");
}

TEST_F(ReadTextFileTest, RefusesWhatIsTooLarge) {
  ExpectError(Write("123456"), 5, ErrorKind::kFormat, "6 bytes, expected at most 5");
}

TEST_F(ReadTextFileTest, RefusesAMissingFile) {
  ExpectError(folder_ / "none", 10, ErrorKind::kIo, "No such file");
}

TEST_F(ReadTextFileTest, RefusesADirectory) {
  ExpectError(folder_, 10, ErrorKind::kIo, "found a directory");
}

TEST_F(ReadTextFileTest, RefusesAPipeWithoutHanging) {
  const auto path = folder_ / "pipe";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  ExpectError(path, 10, ErrorKind::kIo, "not a regular file");
}

}  // namespace
}  // namespace godwit
