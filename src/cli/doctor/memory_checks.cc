#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/control_groups.h"
#include "base/machine_memory.h"
#include "cli/doctor/checks.h"

namespace godwit::cli {
namespace {

constexpr std::string_view kLargePages = "/sys/kernel/mm/transparent_hugepage";

// The memory of the machine, whatever a control group leaves of it. 0: unknown.
int64_t WholeMemory(const MachineFacts& machine) {
  return ControlFile(machine.root + "/proc/meminfo").Number("MemTotal:").value_or(0) * 1024;
}

// The command that lifts the lowest limit of the process's control groups.
std::string LiftMemoryLimit(const MachineFacts& machine, int64_t limit) {
  const ControlGroups groups = FindControlGroups(machine.root, "memory");
  for (const std::string& folder : groups.folders) {
    const std::string file = folder + (groups.version1 ? "/memory.limit_in_bytes" : "/memory.max");
    if (ControlFile(file).Number() != limit) continue;
    return fmt::format("echo {} | sudo tee {}", groups.version1 ? "-1" : "max", file);
  }
  return "";
}

}  // namespace

Finding ExamineMemory(const MachineFacts& machine) {
  const int64_t whole = WholeMemory(machine);
  if (whole == 0) return Unknown("The system does not tell its memory.");
  const MachineMemory memory = ReadMachineMemory(machine.root);
  if (KernelLine(machine, "/proc/sys/vm/overcommit_memory") == "2") {
    return Advice("sudo sysctl vm.overcommit_memory=0",
                  "The system counts memory that is only mapped, and so may refuse a model that "
                  "fits.");
  }
  if (memory.total_bytes < whole) {
    return Advice(LiftMemoryLimit(machine, memory.total_bytes),
                  "A control group leaves {} of the machine's {}; a container's limit is a flag of "
                  "its tool, such as --memory.",
                  FormatBytes(memory.total_bytes), FormatBytes(whole));
  }
  if (memory.available_bytes < memory.total_bytes / 2) {
    return Advice(
        "ps -eo rss,pid,args --sort=-rss | head",
        "Other programs hold most of the memory: {} of {} are free for weights and texts.",
        FormatBytes(memory.available_bytes), FormatBytes(memory.total_bytes));
  }
  return Good("{} of {} are free for weights and texts.", FormatBytes(memory.available_bytes),
              FormatBytes(memory.total_bytes));
}

Finding ExamineHugePages(const MachineFacts& machine) {
  const std::string enabled = KernelLine(machine, fmt::format("{}/enabled", kLargePages));
  const std::string_view chosen = Chosen(enabled);
  if (chosen.empty()) return Unknown("This kernel has no huge pages, or does not tell.");
  if (chosen == "never") {
    return Advice(fmt::format("echo madvise | sudo tee {}/enabled", kLargePages),
                  "Huge pages are switched off, and weights in small ones are read more slowly.");
  }
  const std::string defrag = KernelLine(machine, fmt::format("{}/defrag", kLargePages));
  if (Chosen(defrag) == "never") {
    return Advice(fmt::format("echo madvise | sudo tee {}/defrag", kLargePages),
                  "The system makes no huge pages out of scattered memory, so that weights get few "
                  "after some days.");
  }
  return Good("Weights lie in huge pages ({}).", chosen);
}

Finding ExamineSwap(const MachineFacts& machine) {
  const ControlFile meminfo(machine.root + "/proc/meminfo");
  const int64_t total = meminfo.Number("SwapTotal:").value_or(-1);
  const int64_t used = total - meminfo.Number("SwapFree:").value_or(total);
  if (total < 0) return Unknown("The system does not tell its swap space.");
  if (total == 0) return Good("There is no swap space, so weights stay in memory.");
  // Below this, what lies there belongs to programs that sleep.
  constexpr int64_t kMuch = 16;
  if (used > total / kMuch) {
    return Advice(
        "sudo sysctl vm.swappiness=1",
        "{} are swapped out, and weights would be read back from the disk at every token.",
        FormatBytes(used * 1024));
  }
  return Good("{} of swap space are hardly in use.", FormatBytes(total * 1024));
}

}  // namespace godwit::cli
