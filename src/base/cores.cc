#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <thread>

#include "base/error.h"

namespace godwit {

std::vector<int> AllowedCpus() {
  // One cpu_set_t holds 1024 CPUs; the call fails with EINVAL on machines that have more.
  std::vector<cpu_set_t> sets(16);
  const size_t bytes = sets.size() * sizeof(cpu_set_t);
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, sets.data()) != 0) return cpus;
  for (int cpu = 0; cpu < static_cast<int>(bytes * 8); ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, sets.data())) cpus.push_back(cpu);
  }
  return cpus;
}

int CountCores(std::span<const int> cpus, const std::string& topology_root) {
  // Siblings share one list ("0,64" or "0-1"), so distinct lists are distinct cores.
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    std::ifstream file(fmt::format("{}/cpu{}/topology/thread_siblings_list", topology_root, cpu));
    std::string siblings;
    if (!std::getline(file, siblings)) siblings = fmt::format("cpu{}", cpu);
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

int CpuQuota(const std::string& cpu_max_path) {
  std::ifstream file(cpu_max_path);
  double quota_us = 0;
  double period_us = 0;
  if (!(file >> quota_us >> period_us) || quota_us <= 0 || period_us <= 0) return 0;
  // A quota of 1.5 CPUs is one busy thread: a second would be stopped for half of every period,
  // and all others would wait for it at every join.
  return static_cast<int>(std::clamp(quota_us / period_us, 1.0, 1e6));
}

int AvailableCores() {
  const std::vector<int> cpus = AllowedCpus();
  int cores = cpus.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                           : CountCores(cpus, "/sys/devices/system/cpu");
  // Inside a container the process sees its own cgroup as the root.
  if (const int quota = CpuQuota("/sys/fs/cgroup/cpu.max"); quota > 0) {
    cores = std::min(cores, quota);
  }
  return std::max(cores, 1);
}

}  // namespace godwit
