#include "base/cores.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"

namespace godwit::cores_test {
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
  EXPECT_EQ(CpuQuota(root.path().string()), 0);
  root.Write("proc/self/cgroup", "0::/\n");
  const auto quota = [&](const char* text) {
    root.Write("sys/fs/cgroup/cpu.max", text);
    return CpuQuota(root.path().string());
  };
  EXPECT_EQ(quota("max 100000\n"), 0);
  EXPECT_EQ(quota("200000 100000\n"), 2);
  EXPECT_EQ(quota("150000 100000\n"), 1);
  EXPECT_EQ(quota("50000 100000\n"), 1);
  EXPECT_EQ(quota("-1 0\n"), 0);
  EXPECT_EQ(quota("200000"), 0);
  EXPECT_EQ(quota(""), 0);
}

// As with memory, the tightest quota counts, in whichever group it stands.
TEST(Cores, EveryGroupAboveHasAQuota) {
  const TempFolder root;
  const auto quota = [&] { return CpuQuota(root.path().string()); };
  root.Write("proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(quota(), 0);
  root.Write("sys/fs/cgroup/a/b/cpu.max", "700000 100000\n");
  EXPECT_EQ(quota(), 7);
  root.Write("sys/fs/cgroup/a/cpu.max", "200000 50000\n");
  EXPECT_EQ(quota(), 4);
  root.Write("sys/fs/cgroup/a/c/cpu.max", "100000 100000\n");
  EXPECT_EQ(quota(), 4) << "a neighbour's";
  root.Write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota(), 3);
  root.Write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), 3);
}

TEST(Cores, Version1HasTwoFilesForAQuota) {
  const TempFolder root;
  const auto quota = [&] { return CpuQuota(root.path().string()); };
  root.Write("proc/self/cgroup", "9:memory:/x\n4:cpu,cpuacct:/a\n0::/y\n");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0);
  root.Write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "500000\n");
  root.Write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 5);
}

TEST(Cores, AtLeastOne) { EXPECT_GE(AvailableCores(), 1); }

}  // namespace
}  // namespace godwit::cores_test
