#include "base/machine_memory.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/control_groups.h"

namespace godwit {
namespace {

// The files of a control group with a memory limit.
struct MemoryGroup {
  std::string limit, usage, stat;
  // Lines of `stat` for the page cache.
  std::string_view inactive_file, active_file;
};

std::vector<MemoryGroup> FindMemoryGroups(const std::string& root) {
  const ControlGroups groups = FindControlGroups(root, "memory");
  std::vector<MemoryGroup> memory;
  for (const std::string& folder : groups.folders) {
    if (groups.version1) {
      memory.push_back({folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes",
                        folder + "/memory.stat", "total_inactive_file", "total_active_file"});
    } else {
      memory.push_back({folder + "/memory.max", folder + "/memory.current", folder + "/memory.stat",
                        "inactive_file", "active_file"});
    }
  }
  return memory;
}

// The memory that is left free of `total_bytes`.
int64_t ReserveOf(int64_t total_bytes) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  return std::min(total_bytes / 64, kMostBytes);
}

MachineMemory Read(const std::string& meminfo, std::span<const MemoryGroup> groups) {
  constexpr int64_t kKiB = 1024;
  const ControlFile file(meminfo);
  MachineMemory memory;
  const std::optional<int64_t> total = file.Number("MemTotal:");
  memory.total_bytes = total ? *total * kKiB : sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const std::optional<int64_t> available = file.Number("MemAvailable:");
  memory.available_bytes = available ? *available * kKiB : memory.total_bytes;
  for (const MemoryGroup& group : groups) {
    const std::optional<int64_t> limit = ControlFile(group.limit).Number();
    if (!limit) continue;
    // The page cache can be given back. A group's usage counts it, and reading a checkpoint fills
    // it.
    const ControlFile stat(group.stat);
    const int64_t used = ControlFile(group.usage).Number().value_or(0) -
                         stat.Number(group.inactive_file).value_or(0) -
                         stat.Number(group.active_file).value_or(0);
    memory.total_bytes = std::min(memory.total_bytes, *limit);
    memory.available_bytes =
        std::min(memory.available_bytes, std::max<int64_t>(0, *limit - std::max<int64_t>(0, used)));
  }
  memory.available_bytes =
      std::max<int64_t>(0, memory.available_bytes - ReserveOf(memory.total_bytes));
  return memory;
}

}  // namespace

MachineMemory ReadMachineMemory() {
  static const std::vector<MemoryGroup> groups = FindMemoryGroups("");
  static const std::string meminfo = "/proc/meminfo";
  return Read(meminfo, groups);
}

MachineMemory ReadMachineMemoryBeside(int64_t mapped_bytes) {
  MachineMemory memory = ReadMachineMemory();
  memory.available_bytes = std::max<int64_t>(0, memory.available_bytes - mapped_bytes);
  return memory;
}

MachineMemory ReadMachineMemory(const std::string& root) {
  return Read(root + "/proc/meminfo", FindMemoryGroups(root));
}

void RefuseMemory(const std::string& what, int64_t bytes, const MachineMemory& memory) {
  Throw(ErrorKind::kMemory, "{} {}, and {} are free of the {} that this process may use", what,
        FormatBytes(bytes), FormatBytes(memory.available_bytes), FormatBytes(memory.total_bytes));
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
