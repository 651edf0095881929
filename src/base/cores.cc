#include "base/cores.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string_view>
#include <thread>

#include "base/control_groups.h"
#include "base/error.h"

namespace godwit {

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

int CpuQuota(const std::string& root) {
  const ControlGroups groups = FindControlGroups(root, "cpu");
  constexpr double kNone = 1e6;
  double cpus = kNone;
  for (const std::string& folder : groups.folders) {
    // The quota is "200000 100000", or "max 100000". Version 1 says -1 for none.
    const ControlFile file(folder + (groups.version1 ? "/cpu.cfs_quota_us" : "/cpu.max"));
    const std::string_view text = file.text();
    const auto quota_us = file.Number();
    const auto period_us =
        groups.version1 ? ControlFile(folder + "/cpu.cfs_period_us").Number()
                        : ControlFile::NumberAt(text.substr(std::min(text.find(' '), text.size())));
    if (quota_us.value_or(0) <= 0 || period_us.value_or(0) <= 0) continue;
    cpus = std::min(cpus, static_cast<double>(*quota_us) / static_cast<double>(*period_us));
  }
  // A quota of 1.5 CPUs is one busy thread. A second one would be stopped for half of every period,
  // and all others would wait for it at every join.
  return cpus < kNone ? static_cast<int>(std::max(cpus, 1.0)) : 0;
}

int AvailableCores() {
  const std::vector<int> cpus = AllowedCpus();
  int cores = cpus.empty() ? static_cast<int>(std::thread::hardware_concurrency())
                           : CountCores(cpus, "/sys/devices/system/cpu");
  if (const int quota = CpuQuota(""); quota > 0) cores = std::min(cores, quota);
  return std::max(cores, 1);
}

}  // namespace godwit
