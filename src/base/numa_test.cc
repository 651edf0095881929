#include "base/numa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "base/cores.h"
#include "base/error.h"
#include "base/test_folder.h"
#include "base/thread_pool.h"

namespace godwit::numa_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Numa, NamesOfPlacements) {
  EXPECT_EQ(ParseNuma("none"), Numa::kNone);
  EXPECT_EQ(ParseNuma(""), Numa::kNone);
  EXPECT_EQ(ParseNuma("distribute"), Numa::kDistribute);
  EXPECT_THROW(ParseNuma("isolate"), Error);
}

TEST(Numa, CpuLists) {
  EXPECT_THAT(ParseCpuList("0-3,8,10-11"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(ParseCpuList("5\n"), ElementsAre(5));
  EXPECT_THAT(ParseCpuList(""), IsEmpty());
  EXPECT_THAT(ParseCpuList("x"), IsEmpty());
  EXPECT_THAT(ParseCpuList("3-1"), IsEmpty());
  EXPECT_THAT(ParseCpuList("0-99999999999"), IsEmpty());
}

TEST(Numa, NodesHoldTheCpusThatMayBeUsed) {
  const TempFolder folder;
  folder.Write("online", "0-2\n");
  folder.Write("node0/cpulist", "0-3\n");
  folder.Write("node1/cpulist", "4-7\n");
  folder.Write("node2/cpulist", "\n");  // only memory
  const auto nodes = NumaNodes({1, 2, 3, 4, 5, 9}, folder.path().string());
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_THAT(nodes[0].cpus, ElementsAre(1, 2, 3));
  EXPECT_THAT(nodes[1].cpus, ElementsAre(4, 5));
  EXPECT_THAT(AssignCpus(nodes, 4), ElementsAre(1, 4, 2, 5));
  EXPECT_THAT(AssignCpus(nodes, 7), ElementsAre(1, 4, 2, 5, 3, 1, 4));

  const auto unknown = NumaNodes({1, 2}, (folder.path() / "missing").string());
  ASSERT_EQ(unknown.size(), 1u);
  EXPECT_THAT(AssignCpus(unknown, 2), ElementsAre(1, 2));
}

TEST(Numa, WorkersOfAPoolStayWhereTheyArePut) {
  const auto cpus = AllowedCpus();
  ASSERT_FALSE(cpus.empty());
  const int last = cpus.back();
  ThreadPool pool(3, {last, last, last});
  const auto caller = std::this_thread::get_id();
  pool.Run(100, [&](int64_t, int worker) {
    cpu_set_t set;
    ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
    if (worker == 0) {
      EXPECT_EQ(std::this_thread::get_id(), caller);  // and stays unpinned
      EXPECT_EQ(static_cast<size_t>(CPU_COUNT(&set)), cpus.size());
    } else {
      EXPECT_EQ(CPU_COUNT(&set), 1);
      EXPECT_TRUE(CPU_ISSET(last, &set));
    }
  });
}

TEST(Numa, NonePlacesNothing) {
  std::string report;
  EXPECT_THAT(PlaceThreads(Numa::kNone, 4, &report), IsEmpty());
  EXPECT_EQ(report, "");
}

}  // namespace
}  // namespace godwit::numa_test
