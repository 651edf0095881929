#include "base/machine_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

namespace godwit {
namespace {

// The number in a one-line control file, or -1 ("max", or no such file).
int64_t ReadNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

}  // namespace

int64_t PhysicalMemoryBytes() { return sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE); }

MachineMemory ReadMachineMemory() {
  MachineMemory memory;
  memory.total_bytes = PhysicalMemoryBytes();
  memory.available_bytes = memory.total_bytes;
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  for (std::string unit; meminfo >> key >> kib; std::getline(meminfo, unit)) {
    if (key == "MemAvailable:") memory.available_bytes = kib * 1024;
  }
  // Inside a container the process sees its own cgroup as the root.
  const std::string cgroup = "/sys/fs/cgroup";
  const int64_t limit = ReadNumber(cgroup + "/memory.max");
  if (limit > 0 && limit < memory.total_bytes) {
    memory.total_bytes = limit;
    memory.available_bytes =
        std::clamp<int64_t>(limit - CgroupUsedBytes(cgroup), 0, memory.available_bytes);
  }
  return memory;
}

int64_t CgroupUsedBytes(const std::string& folder) {
  int64_t used = ReadNumber(folder + "/memory.current");
  std::ifstream stat(folder + "/memory.stat");
  std::string key;
  for (int64_t bytes = 0; stat >> key >> bytes;) {
    if (key == "active_file" || key == "inactive_file") used -= bytes;
  }
  return std::max<int64_t>(0, used);
}

std::string FormatBytes(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace godwit
