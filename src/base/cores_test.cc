#include "base/cores.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"

namespace godwit {
namespace {

TEST(Cores, SiblingsCountOnce) {
  const TempFolder root;
  root.Write("cpu0/topology/thread_siblings_list", "0,2\n");
  root.Write("cpu2/topology/thread_siblings_list", "0,2\n");
  root.Write("cpu1/topology/thread_siblings_list", "1,3\n");
  root.Write("cpu3/topology/thread_siblings_list", "1,3\n");
  const int all[] = {0, 1, 2, 3};
  EXPECT_EQ(CountCores(all, root.path().string()), 2);
  const int one_core[] = {1, 3};
  EXPECT_EQ(CountCores(one_core, root.path().string()), 1);
}

TEST(Cores, WithoutTopologyEveryCpuIsACore) {
  const TempFolder root;
  const int cpus[] = {4, 5, 9};
  EXPECT_EQ(CountCores(cpus, root.path().string()), 3);
}

TEST(Cores, Quota) {
  const TempFolder root;
  const auto quota = [&](const char* text) {
    return CpuQuota(root.Write("cpu.max", text).string());
  };
  EXPECT_EQ(quota("max 100000\n"), 0);
  EXPECT_EQ(quota("200000 100000\n"), 2);
  EXPECT_EQ(quota("150000 100000\n"), 1);
  EXPECT_EQ(quota("50000 100000\n"), 1);
  EXPECT_EQ(quota("-1 0\n"), 0);
  EXPECT_EQ(quota(""), 0);
  EXPECT_EQ(CpuQuota((root.path() / "absent").string()), 0);
}

TEST(Cores, AtLeastOne) { EXPECT_GE(AvailableCores(), 1); }

}  // namespace
}  // namespace godwit
