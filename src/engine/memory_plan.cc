#include "engine/memory_plan.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "attention/kv_store.h"
#include "base/error.h"

namespace godwit {
namespace {

// The number in a one-line control file, or -1 ("max", or no such file).
int64_t ReadNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

}  // namespace

MachineMemory ReadMachineMemory() {
  MachineMemory memory;
  memory.total_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  memory.available_bytes = memory.total_bytes;
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  int64_t kib = 0;
  for (std::string unit; meminfo >> key >> kib; std::getline(meminfo, unit)) {
    if (key == "MemAvailable:") memory.available_bytes = kib * 1024;
  }
  const int64_t limit = ReadNumber("/sys/fs/cgroup/memory.max");
  if (limit > 0 && limit < memory.total_bytes) {
    const int64_t used = std::max<int64_t>(0, ReadNumber("/sys/fs/cgroup/memory.current"));
    memory.total_bytes = limit;
    memory.available_bytes = std::clamp<int64_t>(limit - used, 0, memory.available_bytes);
  }
  return memory;
}

int64_t LargestContext(const AttentionGeometry& geometry, DType kv_type, int64_t free_bytes) {
  return std::max<int64_t>(0, free_bytes) / KvBytesPerToken(geometry, kv_type);
}

void CheckKvFits(const AttentionGeometry& geometry, DType kv_type, int64_t tokens) {
  const int64_t available = ReadMachineMemory().available_bytes;
  const int64_t fits = LargestContext(geometry, kv_type, available);
  if (tokens <= fits) return;
  const auto per_token = static_cast<double>(KvBytesPerToken(geometry, kv_type));
  Throw(
      ErrorKind::kMemory,
      "a KV cache of {} tokens in {} takes {:.1f} GiB, and {} are available: at most {} tokens fit",
      tokens, Name(kv_type), per_token * static_cast<double>(tokens) / (int64_t{1} << 30),
      FormatBytes(available), fits);
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
