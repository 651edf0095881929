// How much memory this process may take, and the one place that refuses what does not fit.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/error.h"

namespace godwit {

// The memory that this process may use at most, and the part that could be taken now without
// swapping. It is the machine's, or less within a control group that limits it (containers,
// systemd), its own or one above it. A 64th of the whole, 1 GiB at most, never counts as available:
// it is for page tables, scratch memory, and the pages of programs. Where none of it is left, the
// system takes a process down as soon as one needs its code.
struct MachineMemory {
  int64_t total_bytes = 0;
  int64_t available_bytes = 0;
};

// After the first call, allocates nothing: a cache looks here whenever it grows.
MachineMemory ReadMachineMemory();

// The same where this process goes on reading mapped files of so many bytes, whose memory the
// system says is free.
MachineMemory ReadMachineMemoryBeside(int64_t mapped_bytes);

// The testable half: proc/meminfo, proc/self/cgroup and sys/fs/cgroup as they lie below `root`.
MachineMemory ReadMachineMemory(const std::string& root);

// "512 B", "1.5 GiB".
std::string FormatBytes(int64_t bytes);

[[noreturn]] void RefuseMemory(const std::string& what, int64_t bytes, const MachineMemory& memory);

// Throws Error(kMemory) with the numbers if `bytes` more cannot be taken of that. The system would
// promise more than it has and take the process down later. what: the beginning of the sentence,
// "the weights take".
template <typename... Args>
void RequireMemory(const MachineMemory& memory, int64_t bytes, fmt::format_string<Args...> what,
                   Args&&... args) {
  if (bytes <= memory.available_bytes) return;
  RefuseMemory(fmt::format(what, std::forward<Args>(args)...), bytes, memory);
}
// The same, of what there is now.
template <typename... Args>
void RequireMemory(int64_t bytes, fmt::format_string<Args...> what, Args&&... args) {
  RequireMemory(ReadMachineMemory(), bytes, what, std::forward<Args>(args)...);
}

}  // namespace godwit
