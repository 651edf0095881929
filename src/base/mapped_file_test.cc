#include "base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::mapped_file_test {
namespace {

using ::testing::HasSubstr;

std::string MessageOf(const std::filesystem::path& path) {
  return ErrorOf(ErrorKind::kIo, [&] { MappedFile file(path); });
}

std::string Text(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.Span().data()), file.Span().size()};
}

TEST(MappedFileTest, ShowsTheBytesOfTheFile) {
  const TempFolder folder;
  const MappedFile file(folder.Write("a", "hello"));
  EXPECT_EQ(Text(file), "hello");
  EXPECT_EQ(file.path(), (folder.path() / "a").string());
}

TEST(MappedFileTest, MovesWithoutMovingTheBytes) {
  const TempFolder folder;
  MappedFile a(folder.Write("a", "hello"));
  const std::byte* data = a.Span().data();
  MappedFile b(std::move(a));
  EXPECT_EQ(b.Span().data(), data);
  MappedFile c(folder.Write("c", "other"));
  c = std::move(b);
  EXPECT_EQ(Text(c), "hello");
}

TEST(MappedFileTest, RefusesWhatCannotBeMapped) {
  const TempFolder folder;
  EXPECT_THAT(MessageOf(folder.path() / "none"), HasSubstr("none: cannot open: No such file"));
  EXPECT_THAT(MessageOf(folder.path()), HasSubstr("expected a file, found a folder"));
  EXPECT_THAT(MessageOf(folder.Write("empty", "")), HasSubstr("the file is empty"));
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(MessageOf(pipe), HasSubstr("expected a regular file"));
}

TEST(MappedFileTest, RefusesAnUnreadableFile) {
  const TempFolder folder;
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const std::filesystem::path path = folder.Write("secret", "x");
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  EXPECT_THAT(MessageOf(path), HasSubstr("Permission denied"));
}

TEST(MappedFileTest, TakesAdviceOnAnyRange) {
  const TempFolder folder;
  const std::string content(10000, 'x');
  const MappedFile file(folder.Write("a", content));
  for (const auto advice : {MappedFile::Advice::kWillNeed, MappedFile::Advice::kDontNeed,
                            MappedFile::Advice::kSequential, MappedFile::Advice::kLargePages}) {
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

TEST(MappedFileTest, DropsPagesOnRequest) {
  const TempFolder folder;
  constexpr size_t kMib = 32;
  const MappedFile file(folder.Write("big", std::string(kMib << 20, 'x')));
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
}  // namespace godwit::mapped_file_test
