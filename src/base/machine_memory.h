// How much memory this machine has, and how sizes are written for people.
#pragma once

#include <cstdint>
#include <string>

namespace godwit {

int64_t PhysicalMemoryBytes();

// Physical memory, and what of it could be taken now without swapping. Within a container: its
// limit, if that is lower.
struct MachineMemory {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;
};
MachineMemory ReadMachineMemory();

// The testable half: of a cgroup v2 `folder`, the bytes that its processes cannot give back. The
// page cache can be: memory.current counts it, and reading a checkpoint fills it.
int64_t CgroupUsedBytes(const std::string& folder);

// "512 B", "1.5 GiB".
std::string FormatBytes(int64_t bytes);

}  // namespace godwit
