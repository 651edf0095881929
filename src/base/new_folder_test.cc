#include "base/new_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::new_folder_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::string> Listing(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(NewFolder, AppearsWholeAtCommit) {
  const TempFolder place;
  NewFolder folder(place.path() / "model/");
  std::ofstream(folder.path() / "file") << "content";
  EXPECT_FALSE(fs::exists(place.path() / "model"));
  folder.Commit();
  EXPECT_EQ(Listing(place.path()), std::vector<std::string>{"model"});
  EXPECT_EQ(ReadTextFile(place.path() / "model" / "file", 100), "content");
}

TEST(NewFolder, WithoutCommitNothingRemains) {
  const TempFolder place;
  {
    NewFolder folder(place.path() / "model");
    std::ofstream(folder.path() / "file") << "content";
    EXPECT_EQ(Listing(place.path()).size(), 1);
  }
  EXPECT_EQ(Listing(place.path()), std::vector<std::string>{});
}

TEST(NewFolder, ExistingTargetsAreRefused) {
  const TempFolder place;
  place.Write("file", "");
  fs::create_directory(place.path() / "empty");
  fs::create_symlink("nowhere", place.path() / "link");
  for (const char* name : {"file", "empty", "empty/", "link"}) {
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { NewFolder(place.path() / name); }),
                HasSubstr("exists already"));
  }
  EXPECT_THAT(ErrorOf(ErrorKind::kIo, [&] { NewFolder(place.path() / "no" / "model"); }),
              HasSubstr("cannot make the folder: No such file"));
}

TEST(NewFolder, OneThatAppearedMeanwhileStays) {
  const TempFolder place;
  {
    NewFolder folder(place.path() / "model");
    fs::create_directory(place.path() / "model");
    EXPECT_THAT(ErrorOf(ErrorKind::kInput, [&] { folder.Commit(); }), HasSubstr("exists already"));
  }
  EXPECT_EQ(Listing(place.path()), std::vector<std::string>{"model"});
}

TEST(NewFolder, LeftoverOfAKilledProcessIsRecognized) {
  const TempFolder place;
  const fs::path target = place.path() / "model";
  const pid_t child = fork();
  if (child == 0) {
    const NewFolder folder(target);
    _exit(0);  // no destructor runs
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const NewFolder ours(target);
  fs::create_directory(place.path() / "model.tmp-x");
  EXPECT_EQ(AbandonedFolders(target),
            std::vector<fs::path>{fmt::format("{}.tmp-{}", target.string(), child)});
}

}  // namespace
}  // namespace godwit::new_folder_test
