#include "console/terminal/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "godwit/error.h"

namespace godwit::console::output_file_test {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    folder_ = fs::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~OutputFileTest() override { fs::remove_all(folder_); }

  static void Write(OutputFile& file, std::string_view text) {
    file.Write(std::as_bytes(std::span(text)));
  }
  static std::string Read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  auto FileCount() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, AppearsWhenCommitted) {
  OutputFile file(folder_ / "out");
  Write(file, "one");
  Write(file, "two");
  EXPECT_FALSE(fs::exists(folder_ / "out"));
  file.Commit();
  EXPECT_EQ(Read(folder_ / "out"), "onetwo");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  std::ofstream(folder_ / "out") << "before";
  {
    OutputFile file(folder_ / "out");
    Write(file, "half");
  }
  EXPECT_EQ(Read(folder_ / "out"), "before");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(OutputFileTest, FollowsLinks) {
  std::ofstream(folder_ / "target") << "before";
  fs::create_symlink("target", folder_ / "link");
  fs::create_symlink("link", folder_ / "chain");
  fs::create_symlink("new", folder_ / "dangling");
  for (const auto& [name, target] :
       {std::pair{"link", "target"}, {"chain", "target"}, {"dangling", "new"}}) {
    OutputFile file(folder_ / name);
    Write(file, name);
    file.Commit();
    EXPECT_TRUE(fs::is_symlink(folder_ / name));
    EXPECT_EQ(Read(folder_ / target), name);
  }
  fs::create_symlink("circle", folder_ / "circle");
  EXPECT_THROW(OutputFile(folder_ / "circle"), Error);
}

TEST_F(OutputFileTest, KeepsPermissions) {
  std::ofstream(folder_ / "out") << "secret";
  fs::permissions(folder_ / "out", fs::perms::owner_read | fs::perms::owner_write);
  WriteFile(folder_ / "out", "new secret");
  EXPECT_EQ(fs::status(folder_ / "out").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

// A descriptor that the shell opened with 3>> has a place where writing continues.
TEST_F(OutputFileTest, WritesToDescriptors) {
  std::ofstream(folder_ / "out") << "before, ";
  const int opened = open((folder_ / "out").c_str(), O_WRONLY | O_APPEND);
  WriteFile("/dev/fd/" + std::to_string(opened), "after");
  close(opened);
  EXPECT_EQ(Read(folder_ / "out"), "before, after");
  EXPECT_THROW(OutputFile("/dev/fd/" + std::to_string(opened)), Error);
}

TEST_F(OutputFileTest, RefusesWhatCannotBeWritten) {
  EXPECT_THROW(OutputFile(folder_ / "missing" / "out"), Error);
  EXPECT_THROW(OutputFile{folder_}, Error);
  OutputFile full("/dev/full");
  EXPECT_THROW(Write(full, "x"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace godwit::console::output_file_test
