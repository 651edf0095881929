#include "console/terminal/clean_up.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/test_folder.h"

namespace godwit::console::clean_up_test {
namespace {

namespace fs = std::filesystem;

TEST(CleanUpTest, TakesAwayFilesAndFolders) {
  const TempFolder folder;
  const auto file = folder.Write("unfinished", "half");
  const auto kept = folder.Write("finished", "whole");
  for (int i = 0; i < 300; ++i) folder.Write("folder/shard-" + std::to_string(i), "half");
  const RemovedOnSignal first(file), second(folder.path() / "folder"), third("/no/such/file");
  std::optional<RemovedOnSignal> gone(kept);
  gone.reset();
  RemoveUnfinished();
  EXPECT_FALSE(fs::exists(file));
  EXPECT_FALSE(fs::exists(folder.path() / "folder"));
  EXPECT_TRUE(fs::exists(kept));
}

TEST(CleanUpTest, DoesNotFollowLinks) {
  const TempFolder folder;
  const auto kept = folder.Write("folder/weights", "dear");
  fs::create_directory_symlink("folder", folder.path() / "link");
  const RemovedOnSignal link(folder.path() / "link");
  RemoveUnfinished();
  EXPECT_FALSE(fs::is_symlink(folder.path() / "link"));
  EXPECT_TRUE(fs::exists(kept));
}

}  // namespace
}  // namespace godwit::console::clean_up_test
