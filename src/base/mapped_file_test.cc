#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.h"

namespace godwit {
namespace {

using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "godwit-map-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~MappedFileTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }

  static std::string MessageOf(const std::filesystem::path& path) {
    try {
      MappedFile file(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIo);
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

std::string Text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.Span().data()), file.Span().size()};
}

TEST_F(MappedFileTest, ShowsTheBytesOfTheFile) {
  const MappedFile file(Write("a", "hello"));
  EXPECT_EQ(Text(file), "hello");
  EXPECT_EQ(file.path(), (folder_ / "a").string());
}

TEST_F(MappedFileTest, MovesWithoutMovingTheBytes) {
  MappedFile a(Write("a", "hello"));
  const std::byte* data = a.Span().data();
  MappedFile b(std::move(a));
  EXPECT_EQ(b.Span().data(), data);
  MappedFile c(Write("c", "other"));
  c = std::move(b);
  EXPECT_EQ(Text(c), "hello");
}

TEST_F(MappedFileTest, RefusesWhatCannotBeMapped) {
  EXPECT_THAT(MessageOf(folder_ / "none"), HasSubstr("none: cannot open: No such file"));
  EXPECT_THAT(MessageOf(folder_), HasSubstr("expected a file, found a folder"));
  EXPECT_THAT(MessageOf(Write("empty", "")), HasSubstr("the file is empty"));
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(MessageOf(pipe), HasSubstr("expected a regular file"));
}

TEST_F(MappedFileTest, RefusesAnUnreadableFile) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const std::filesystem::path path = Write("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_THAT(MessageOf(path), HasSubstr("Permission denied"));
}

TEST_F(MappedFileTest, TakesAdviceOnAnyRange) {
  const std::string content(10000, 'x');
  const MappedFile file(Write("a", content));
  for (const auto advice : {MappedFile::Advice::kWillNeed, MappedFile::Advice::kDontNeed,
                            MappedFile::Advice::kSequential}) {
    file.Advise(0, 10000, advice);
    file.Advise(5000, size_t(-1), advice);
    file.Advise(9999, 1, advice);
    file.Advise(10000, 1, advice);
    file.Advise(size_t(-1), size_t(-1), advice);
    file.Advise(0, 0, advice);
  }
  EXPECT_EQ(Text(file), content);
}

size_t ResidentFileKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssFile:")) return std::strtoull(line.c_str() + 8, nullptr, 10);
  }
  return 0;
}

TEST_F(MappedFileTest, DropsPagesOnRequest) {
  constexpr size_t kMib = 32;
  const MappedFile file(Write("big", std::string(kMib << 20, 'x')));
  const size_t before = ResidentFileKib();
  if (before == 0) GTEST_SKIP() << "/proc/self/status has no RssFile here";
  size_t sum = 0;
  for (const std::byte b : file.Span()) sum += static_cast<size_t>(b);
  EXPECT_EQ(sum, (kMib << 20) * size_t{'x'});
  EXPECT_GT(ResidentFileKib(), before + (kMib << 10) / 2);
  file.Advise(0, file.Span().size(), MappedFile::Advice::kDontNeed);
  EXPECT_LT(ResidentFileKib(), before + (kMib << 10) / 8);
}

}  // namespace
}  // namespace godwit
