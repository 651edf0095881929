#include "base/machine_memory.h"

#include <gtest/gtest.h>

#include "base/test_folder.h"
#include "base/test_support.h"

namespace godwit::machine_memory_test {
namespace {

TEST(MachineMemoryTest, ReadsTheMachine) {
  const MachineMemory memory = ReadMachineMemory();
  EXPECT_GT(memory.total_bytes, int64_t{64} << 20);
  EXPECT_GT(memory.available_bytes, 0);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

class FakeMachine {
 public:
  FakeMachine() {
    folder_.Write("proc/meminfo", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 800 kB\n");
  }
  void Write(const std::string& file, const std::string& text) const { folder_.Write(file, text); }
  MachineMemory Read() const { return ReadMachineMemory(folder_.path().string()); }
  // KiB as {total, available}, with the 64th that never counts as available.
  std::pair<int64_t, int64_t> Memory() const {
    const MachineMemory memory = Read();
    return {memory.total_bytes / 1024, (memory.available_bytes + memory.total_bytes / 64) / 1024};
  }
  static std::string KiB(int64_t kib) { return fmt::format("{}\n", kib * 1024); }

 private:
  TempFolder folder_;
};

using Pair = std::pair<int64_t, int64_t>;

TEST(MachineMemoryTest, WithoutControlGroupsTheMachineIsTheLimit) {
  const FakeMachine machine;
  EXPECT_EQ(machine.Memory(), Pair(1000, 800));
  machine.Write("proc/self/cgroup", "0::/user.slice\n");  // a group without a folder
  EXPECT_EQ(machine.Memory(), Pair(1000, 800));
}

TEST(MachineMemoryTest, APartIsLeftToTheSystem) {
  const FakeMachine machine;
  EXPECT_EQ(machine.Read().available_bytes, 800 * 1024 - 1000 * 1024 / 64);
  machine.Write("proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 15 kB\n");
  EXPECT_EQ(machine.Read().available_bytes, 0) << "never less";
  constexpr int64_t kGiB = int64_t{1} << 30;
  machine.Write("proc/meminfo", fmt::format("MemTotal: {} kB\nMemAvailable: {} kB\n",
                                            1024 * kGiB / 1024, 1000 * kGiB / 1024));
  EXPECT_EQ(machine.Read().available_bytes, 999 * kGiB) << "at most 1 GiB";
}

// Version 2: the tightest limit counts, in whichever group it stands, against that group's own
// usage.
TEST(MachineMemoryTest, EveryGroupAboveLimits) {
  const FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/a/b/c\n");
  machine.Write("sys/fs/cgroup/a/b/c/memory.max", "max\n");
  EXPECT_EQ(machine.Memory(), Pair(1000, 800));
  machine.Write("sys/fs/cgroup/a/memory.max", FakeMachine::KiB(600));
  machine.Write("sys/fs/cgroup/a/memory.current", FakeMachine::KiB(500));
  EXPECT_EQ(machine.Memory(), Pair(600, 100));
  machine.Write("sys/fs/cgroup/a/b/memory.max", FakeMachine::KiB(400));
  machine.Write("sys/fs/cgroup/a/b/memory.current", FakeMachine::KiB(10));
  EXPECT_EQ(machine.Memory(), Pair(400, 100));
  machine.Write("sys/fs/cgroup/a/b/c/memory.max", FakeMachine::KiB(50));
  EXPECT_EQ(machine.Memory(), Pair(50, 50));
  // A neighbour's limit does not count.
  machine.Write("sys/fs/cgroup/a/d/memory.max", FakeMachine::KiB(1));
  EXPECT_EQ(machine.Memory(), Pair(50, 50));
  machine.Write("sys/fs/cgroup/memory.max", FakeMachine::KiB(30));  // a container's own root
  EXPECT_EQ(machine.Memory(), Pair(30, 30));
  // A process that entered from outside has the path of another root.
  machine.Write("proc/self/cgroup", "0::/../other\n");
  EXPECT_EQ(machine.Memory(), Pair(30, 30));
}

TEST(MachineMemoryTest, ThePageCacheOfAGroupIsNotTaken) {
  const FakeMachine machine;
  machine.Write("proc/self/cgroup", "0::/\n");
  machine.Write("sys/fs/cgroup/memory.max", "10000\n");
  machine.Write("sys/fs/cgroup/memory.current", "9000\n");
  machine.Write("sys/fs/cgroup/memory.stat",
                "anon 300\nfile 6500\ninactive_file 4000\nactive_file 2000\nslab 50\n");
  EXPECT_EQ(machine.Memory().second, (10000 - 3000) / 1024);
  machine.Write("sys/fs/cgroup/memory.current", "20000\n");  // above the lowered limit
  EXPECT_EQ(machine.Memory().second, 0);
}

TEST(MachineMemoryTest, Version1HasAHierarchyForMemory) {
  const FakeMachine machine;
  machine.Write("proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/a/b\n0::/y\n");
  const std::string base = "sys/fs/cgroup/memory/";
  machine.Write(base + "memory.limit_in_bytes", "9223372036854771712\n");
  machine.Write(base + "a/b/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(machine.Memory(), Pair(1000, 800));
  machine.Write(base + "a/memory.limit_in_bytes", FakeMachine::KiB(300));
  machine.Write(base + "a/memory.usage_in_bytes", FakeMachine::KiB(200));
  machine.Write(base + "a/memory.stat",
                "inactive_file 1\ntotal_inactive_file 51200\ntotal_active_file 51200\n");
  EXPECT_EQ(machine.Memory(), Pair(300, 200));
}

TEST(MachineMemoryTest, OverlargeRequestIsRefusedWithTheNumbers) {
  RequireMemory(1, "a byte takes");
  const std::string message =
      ErrorOf(ErrorKind::kMemory, [] { RequireMemory(INT64_MAX, "{} takes", "everything"); });
  EXPECT_TRUE(message.starts_with("everything takes 8192.0 PiB, and ")) << message;
  EXPECT_TRUE(message.ends_with(" that this process may use")) << message;
}

TEST(MachineMemoryTest, FormatsBytesForPeople) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(int64_t{16} << 30), "16.0 GiB");
}

}  // namespace
}  // namespace godwit::machine_memory_test
