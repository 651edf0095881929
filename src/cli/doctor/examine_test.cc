#include "cli/doctor/examine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/test_folder.h"

namespace godwit::cli::examine_test {
namespace {

using ::testing::HasSubstr;
using Status = Finding::Status;

// A machine with four CPUs in a folder of its own, in order unless a test spoils it.
class FakeMachine {
 public:
  FakeMachine() {
    machine_ = {.root = folder_.path().string(),
                .isa = "avx2",
                .best_isa = "avx2",
                .cpus = {0, 1, 2, 3},
                .most_files = 1 << 20,
                .cache_folder = "/home/u/.cache",
                .cache_device = "259:1",
                .cache_free_bytes = int64_t{100} << 30,
                .cache_file_system = 0xef53};
    Write("sys/devices/system/cpu/online", "0-3\n");
    Write("proc/loadavg", "0.10 0.20 0.30 1/100 1000\n");
    Memory(16, 15, 0, 0);
    Write("proc/sys/vm/overcommit_memory", "0\n");
    Write("proc/self/cgroup", "0::/group\n");
    Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    Write("sys/kernel/mm/transparent_hugepage/defrag", "always defer [madvise] never\n");
    Write("sys/dev/block/259:1/queue/rotational", "0\n");
  }

  MachineFacts* operator->() { return &machine_; }

  void Write(std::string_view name, std::string_view content) { folder_.Write(name, content); }
  void Remove(std::string_view name) { std::filesystem::remove_all(folder_.path() / name); }

  void WriteForEachCpu(std::string_view name, std::string_view content) {
    for (const int cpu : machine_.cpus) {
      Write(fmt::format("sys/devices/system/cpu/cpu{}/{}", cpu, name), content);
    }
  }

  void Memory(int total_gib, int available_gib, int swap_gib, int swap_used_gib) {
    constexpr int kKiB = 1 << 20;
    Write("proc/meminfo",
          fmt::format("MemTotal: {} kB\nMemAvailable: {} kB\nSwapTotal: {} kB\nSwapFree: {} kB\n",
                      total_gib * kKiB, available_gib * kKiB, swap_gib * kKiB,
                      (swap_gib - swap_used_gib) * kKiB));
  }

  Finding Of(std::string_view name) const {
    for (const Check& check : AllChecks()) {
      if (check.name == name) return check.examine(machine_);
    }
    ADD_FAILURE() << "there is no check " << name;
    return {};
  }

  void ExpectGood(std::string_view name, std::string_view text) const {
    const Finding finding = Of(name);
    EXPECT_EQ(finding.status, Status::kGood) << finding.text;
    EXPECT_EQ(finding.command, "");
    EXPECT_THAT(finding.text, HasSubstr(std::string(text)));
  }

  // command: exact, with ROOT for the root.
  void ExpectAdvice(std::string_view name, std::string_view text, std::string command) const {
    const Finding finding = Of(name);
    EXPECT_EQ(finding.status, Status::kAdvice) << finding.text;
    EXPECT_THAT(finding.text, HasSubstr(std::string(text)));
    if (const size_t at = command.find("ROOT"); at != std::string::npos) {
      command.replace(at, 4, machine_.root);
    }
    EXPECT_EQ(finding.command, command);
  }

  void ExpectUnknown(std::string_view name) const {
    const Finding finding = Of(name);
    EXPECT_EQ(finding.status, Status::kUnknown) << finding.text;
    EXPECT_EQ(finding.command, "");
  }

 private:
  TempFolder folder_;
  MachineFacts machine_;
};

TEST(Doctor, AMachineInOrderGetsNoAdvice) {
  const FakeMachine machine;
  std::set<std::string_view> names;
  for (const Check& check : AllChecks()) {
    machine.ExpectGood(check.name, "");
    EXPECT_TRUE(names.insert(check.name).second) << check.name;
  }
}

// Every finding is a sentence, and every piece of advice has a command.
TEST(Doctor, AnEmptyRootIsNoError) {
  const TempFolder empty;
  const MachineFacts machine{.root = empty.path().string(), .isa = "scalar", .best_isa = "scalar"};
  for (const Check& check : AllChecks()) {
    const Finding finding = check.examine(machine);
    EXPECT_TRUE(finding.text.ends_with(".")) << check.name << ": " << finding.text;
    EXPECT_EQ(finding.status == Status::kAdvice, !finding.command.empty()) << check.name;
  }
}

TEST(Doctor, Processor) {
  FakeMachine machine;
  machine->isa = "scalar";
  machine.ExpectAdvice("processor", "GODWIT_ISA asks for scalar", "unset GODWIT_ISA");
  machine->best_isa = "scalar";
  machine.ExpectAdvice("processor", "lacks AVX2", "grep --max-count=1 flags /proc/cpuinfo");
}

TEST(Doctor, CoresAreThoseOfTheMask) {
  FakeMachine machine;
  machine.ExpectGood("cores", "4 cores, which are 4 logical CPUs");
  machine.WriteForEachCpu("topology/thread_siblings_list", "0-1\n");
  machine.ExpectGood("cores", "1 cores, which are 4 logical CPUs");
  machine->cpus = {0, 1};
  machine.ExpectAdvice("cores", "2 of the machine's 4", "taskset --cpu-list 0-3 godwit VERB");
  machine->cpus = {};
  machine.ExpectUnknown("cores");
}

TEST(Doctor, CoresUnderAQuota) {
  FakeMachine machine;
  machine.Write("sys/fs/cgroup/group/cpu.max", "150000 100000\n");
  machine.ExpectAdvice("cores", "the time of 1 of 4 cores",
                       "echo max | sudo tee ROOT/sys/fs/cgroup/group/cpu.max");
  machine.Write("sys/fs/cgroup/group/cpu.max", "max 100000\n");
  machine.ExpectGood("cores", "4 cores");
  machine.Write("proc/self/cgroup", "3:cpu,cpuacct:/job\n");
  machine.Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
  machine.Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  machine.ExpectAdvice("cores", "the time of 2 of 4 cores",
                       "echo -1 | sudo tee ROOT/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us");
}

TEST(Doctor, ClockOfGovernors) {
  FakeMachine machine;
  machine.WriteForEachCpu("cpufreq/scaling_governor", "schedutil\n");
  machine.ExpectGood("clock", "governed by schedutil");
  machine.WriteForEachCpu("cpufreq/scaling_governor", "powersave\n");
  machine.ExpectAdvice(
      "clock", "scaling_governor is powersave",
      "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
}

TEST(Doctor, ClockOfPreferences) {
  FakeMachine machine;
  machine.WriteForEachCpu("cpufreq/scaling_driver", "intel_pstate\n");
  machine.WriteForEachCpu("cpufreq/scaling_governor", "powersave\n");
  machine.WriteForEachCpu("cpufreq/energy_performance_preference", "performance\n");
  machine.ExpectGood("clock", "governed by performance");
  machine.WriteForEachCpu("cpufreq/energy_performance_preference", "balance_power\n");
  machine.ExpectAdvice("clock", "energy_performance_preference is balance_power",
                       "echo performance | sudo tee "
                       "/sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference");
}

TEST(Doctor, ClockWithoutBoost) {
  FakeMachine machine;
  machine.Write("sys/devices/system/cpu/cpufreq/boost", "0\n");
  machine.ExpectAdvice("clock", "boost clock is switched off",
                       "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
  machine.Write("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
  machine.ExpectAdvice("clock", "turbo clock is switched off",
                       "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo");
}

TEST(Doctor, Load) {
  FakeMachine machine;
  machine.Write("proc/loadavg", "0.9 0 0 1/1 1\n");
  machine.ExpectGood("load", "0.9 on 4");
  machine.Write("proc/loadavg", "3.25 0 0 1/1 1\n");
  machine.ExpectAdvice("load", "3.2 on 4", "ps -eo pcpu,pid,args --sort=-pcpu | head");
  machine.Remove("proc/loadavg");
  machine.ExpectUnknown("load");
}

TEST(Doctor, Memory) {
  FakeMachine machine;
  machine.ExpectGood("memory", "14.8 GiB of 16.0 GiB");
  machine.Memory(16, 7, 0, 0);
  machine.ExpectAdvice("memory", "6.8 GiB of 16.0 GiB", "ps -eo rss,pid,args --sort=-rss | head");
  machine.Write("sys/fs/cgroup/memory.max", "4294967296\n");
  machine.ExpectAdvice("memory", "leaves 4.0 GiB of the machine's 16.0 GiB",
                       "echo max | sudo tee ROOT/sys/fs/cgroup/memory.max");
  machine.Write("proc/sys/vm/overcommit_memory", "2\n");
  machine.ExpectAdvice("memory", "only mapped", "sudo sysctl vm.overcommit_memory=0");
  machine.Remove("proc/meminfo");
  machine.ExpectUnknown("memory");
}

TEST(Doctor, HugePages) {
  FakeMachine machine;
  machine.ExpectGood("huge pages", "(madvise)");
  machine.Write("sys/kernel/mm/transparent_hugepage/defrag", "always defer madvise [never]\n");
  machine.ExpectAdvice("huge pages", "scattered",
                       "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/defrag");
  machine.Write("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  machine.ExpectAdvice("huge pages", "switched off",
                       "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
  machine.Write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise\n");
  machine.ExpectUnknown("huge pages");
}

TEST(Doctor, Swap) {
  FakeMachine machine;
  machine.ExpectGood("swap", "no swap space");
  machine.Memory(16, 15, 32, 2);
  machine.ExpectGood("swap", "32.0 GiB");
  machine.Memory(16, 15, 32, 3);
  machine.ExpectAdvice("swap", "3.0 GiB are swapped out", "sudo sysctl vm.swappiness=1");
}

TEST(Doctor, MemoryNodes) {
  FakeMachine machine;
  machine.Write("sys/devices/system/node/online", "0-1\n");
  machine.Write("sys/devices/system/node/node0/cpulist", "0-1\n");
  machine.Write("sys/devices/system/node/node1/cpulist", "2-3\n");
  machine.ExpectAdvice("NUMA", "2 memory nodes", "export GODWIT_NUMA=distribute");
  machine.Write("proc/sys/kernel/numa_balancing", "1\n");
  machine.ExpectAdvice("NUMA", "moves pages between 2", "sudo sysctl kernel.numa_balancing=0");
  machine->cpus = {0, 1};
  machine.ExpectGood("NUMA", "equally near");
}

TEST(Doctor, DiskOfSavedTexts) {
  FakeMachine machine;
  machine.ExpectGood("cache disk", "100.0 GiB are free for saved texts in /home/u/.cache, on");
  machine.Write("sys/dev/block/259:1/queue/rotational", "1\n");
  machine.ExpectAdvice("cache disk", "it spins", "export GODWIT_CACHE_DIR=FOLDER_ON_AN_SSD");
  machine->cache_free_bytes = int64_t{3} << 30;
  machine.ExpectAdvice("cache disk", "Only 3.0 GiB", "godwit cache list");
  machine->cache_file_system = 0x01021994;
  machine.ExpectAdvice("cache disk", "lies in memory", "export GODWIT_CACHE_DIR=FOLDER_ON_A_DISK");
  machine->cache_file_system = 0x6969;
  machine.ExpectAdvice("cache disk", "another machine serves",
                       "export GODWIT_CACHE_DIR=FOLDER_ON_A_LOCAL_DISK");
  machine->cache_free_bytes = -1;
  machine.ExpectUnknown("cache disk");
}

TEST(Doctor, DiskOfAPartition) {
  FakeMachine machine;
  machine->cache_device = "8:1";
  machine.ExpectGood("cache disk", "/home/u/.cache.");
  machine.Write("sys/dev/block/8:1/partition", "1\n");
  machine.Write("sys/dev/block/queue/rotational", "1\n");
  machine.ExpectAdvice("cache disk", "it spins", "export GODWIT_CACHE_DIR=FOLDER_ON_AN_SSD");
}

TEST(Doctor, OpenFiles) {
  FakeMachine machine;
  machine->most_files = 1024;
  machine.ExpectAdvice("open files", "1024 files", "sudo prlimit --nofile=65536 --pid $$");
  machine->most_files = 0;
  machine.ExpectGood("open files", "high enough");
}

TEST(Doctor, Mpi) {
  FakeMachine machine;
  machine.ExpectGood("MPI", "built without MPI");
  machine->has_mpi = true;
  machine.ExpectAdvice("MPI", "not on the PATH", "sudo apt-get install openmpi-bin");
  machine->has_mpirun = true;
  machine.ExpectGood("MPI", "ready");
}

TEST(Doctor, Downloads) {
  FakeMachine machine;
  machine->no_downloads = "no libcurl.so.4";
  machine.ExpectAdvice("downloads", "no libcurl.so.4",
                       "sudo apt-get install libcurl4 ca-certificates");
}

TEST(Doctor, ThisMachineHasAFolderForTexts) {
  const TempFolder folder;
  const std::string missing = (folder.path() / "a" / "b").string();
  const MachineFacts machine = ThisMachine(missing);
  EXPECT_EQ(machine.root, "");
  EXPECT_EQ(machine.cache_folder, folder.path().string());
  EXPECT_GE(machine.cache_free_bytes, 0);
  EXPECT_THAT(machine.cache_device, HasSubstr(":"));
  EXPECT_FALSE(machine.cpus.empty());
  EXPECT_EQ(ThisMachine("").cache_free_bytes, -1);
}

}  // namespace
}  // namespace godwit::cli::examine_test
