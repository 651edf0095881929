#include "base/cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace godwit {
namespace {

namespace fs = std::filesystem;

class CoresTest : public ::testing::Test {
 protected:
  CoresTest()
      : root_(fs::path(::testing::TempDir()) /
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::create_directories(root_);
  }
  ~CoresTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  fs::path root_;
};

TEST_F(CoresTest, SiblingsCountOnce) {
  Write("cpu0/topology/thread_siblings_list", "0,2\n");
  Write("cpu2/topology/thread_siblings_list", "0,2\n");
  Write("cpu1/topology/thread_siblings_list", "1,3\n");
  Write("cpu3/topology/thread_siblings_list", "1,3\n");
  const int all[] = {0, 1, 2, 3};
  EXPECT_EQ(CountCores(all, root_.string()), 2);
  const int one_core[] = {1, 3};
  EXPECT_EQ(CountCores(one_core, root_.string()), 1);
}

TEST_F(CoresTest, WithoutTopologyEveryCpuIsACore) {
  const int cpus[] = {4, 5, 9};
  EXPECT_EQ(CountCores(cpus, root_.string()), 3);
}

TEST_F(CoresTest, Quota) {
  Write("max", "max 100000\n");
  Write("two", "200000 100000\n");
  Write("half", "50000 100000\n");
  Write("bad", "-1 0\n");
  EXPECT_EQ(CpuQuota((root_ / "max").string()), 0);
  EXPECT_EQ(CpuQuota((root_ / "two").string()), 2);
  EXPECT_EQ(CpuQuota((root_ / "half").string()), 1);
  EXPECT_EQ(CpuQuota((root_ / "bad").string()), 0);
  EXPECT_EQ(CpuQuota((root_ / "absent").string()), 0);
}

TEST(Cores, AtLeastOne) { EXPECT_GE(AvailableCores(), 1); }

}  // namespace
}  // namespace godwit
