#include "cli/terminal/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "godwit/error.h"

namespace godwit::cli {
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
  OutputFile file(folder_ / "link");
  Write(file, "after");
  file.Commit();
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(Read(folder_ / "target"), "after");
}

TEST_F(OutputFileTest, RefusesWhatCannotBeWritten) {
  EXPECT_THROW(OutputFile(folder_ / "missing" / "out"), Error);
  EXPECT_THROW(OutputFile{folder_}, Error);
  OutputFile full("/dev/full");
  EXPECT_THROW(Write(full, "x"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

}  // namespace
}  // namespace godwit::cli
