#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/control_groups.h"
#include "base/cores.h"
#include "base/numa.h"
#include "cli/doctor/checks.h"

namespace godwit::cli {
namespace {

constexpr std::string_view kCpus = "/sys/devices/system/cpu";

// The first control group whose quota of CPUs is below `cores`, as the command that lifts it.
// Empty: there is none.
std::string LiftQuota(const std::string& root, int cores) {
  const ControlGroups groups = FindControlGroups(root, "cpu");
  for (const std::string& folder : groups.folders) {
    const std::string file = folder + (groups.version1 ? "/cpu.cfs_quota_us" : "/cpu.max");
    const ControlFile content(file);
    const std::string_view text = content.text();
    const auto quota_us = content.Number();
    const auto period_us =
        groups.version1 ? ControlFile(folder + "/cpu.cfs_period_us").Number()
                        : ControlFile::NumberAt(text.substr(std::min(text.find(' '), text.size())));
    if (quota_us.value_or(0) <= 0 || period_us.value_or(0) <= 0) continue;
    if (*quota_us >= cores * *period_us) continue;
    return fmt::format("echo {} | sudo tee {}", groups.version1 ? "-1" : "max", file);
  }
  return "";
}

std::string CpuFile(int cpu, std::string_view name) {
  return fmt::format("{}/cpu{}/cpufreq/{}", kCpus, cpu, name);
}

std::string WriteToCpus(std::string_view word, std::string_view name) {
  return fmt::format("echo {} | sudo tee {}/cpu*/cpufreq/{}", word, kCpus, name);
}

}  // namespace

Finding ExamineProcessor(const MachineFacts& machine) {
  if (machine.isa != machine.best_isa) {
    return Advice("unset GODWIT_ISA", "GODWIT_ISA asks for {}, and this processor has {}.",
                  machine.isa, machine.best_isa);
  }
  if (machine.isa == "scalar") {
    return Advice("grep --max-count=1 flags /proc/cpuinfo",
                  "godwit has only plain loops for this processor, ten times slower and more: it "
                  "lacks AVX2, FMA or F16C, or its virtual machine hides them.");
  }
  return Good("Kernels run with the best instruction set of this processor, {}.", machine.isa);
}

Finding ExamineCores(const MachineFacts& machine) {
  const int cores = CountCores(machine.cpus, machine.root + std::string(kCpus));
  if (cores == 0) return Unknown("The system does not say which CPUs this process may use.");
  if (const int quota = CpuQuota(machine.root); quota > 0 && quota < cores) {
    return Advice(
        LiftQuota(machine.root, cores),
        "A control group grants the time of {} of {} cores; a container's limit is a flag "
        "of its tool, such as --cpus.",
        quota, cores);
  }
  const std::string line = KernelLine(machine, fmt::format("{}/online", kCpus));
  const std::vector<int> online = ParseCpuList(line);
  if (machine.cpus.size() < online.size()) {
    return Advice(fmt::format("taskset --cpu-list {} godwit VERB", line),
                  "This process may use {} of the machine's {} logical CPUs.", machine.cpus.size(),
                  online.size());
  }
  return Good("godwit takes a thread for each of {} cores, which are {} logical CPUs.", cores,
              machine.cpus.size());
}

Finding ExamineClock(const MachineFacts& machine) {
  std::set<std::string> governors, preferences, drivers;
  for (const int cpu : machine.cpus) {
    governors.insert(KernelLine(machine, CpuFile(cpu, "scaling_governor")));
    preferences.insert(KernelLine(machine, CpuFile(cpu, "energy_performance_preference")));
    drivers.insert(KernelLine(machine, CpuFile(cpu, "scaling_driver")));
  }
  for (auto* const words : {&governors, &preferences, &drivers}) words->erase("");
  if (KernelLine(machine, fmt::format("{}/intel_pstate/no_turbo", kCpus)) == "1") {
    return Advice(fmt::format("echo 0 | sudo tee {}/intel_pstate/no_turbo", kCpus),
                  "The processor's turbo clock is switched off.");
  }
  if (KernelLine(machine, fmt::format("{}/cpufreq/boost", kCpus)) == "0") {
    return Advice(fmt::format("echo 1 | sudo tee {}/cpufreq/boost", kCpus),
                  "The processor's boost clock is switched off.");
  }
  if (governors.empty()) {
    return Good("The system leaves the clock to the processor or to the machine below this one.");
  }
  // Under these drivers the processor chooses its clock itself, by the preference.
  const bool by_preference = !preferences.empty() && (drivers.contains("intel_pstate") ||
                                                      drivers.contains("amd-pstate-epp"));
  const auto& words = by_preference ? preferences : governors;
  for (const char* slow : {"powersave", "conservative", "power", "balance_power"}) {
    if (!words.contains(slow)) continue;
    const char* const file = by_preference ? "energy_performance_preference" : "scaling_governor";
    return Advice(WriteToCpus("performance", file), "The clock is held down: {} is {}.", file,
                  slow);
  }
  return Good("The clock is governed by {}.", fmt::join(words, ", "));
}

Finding ExamineLoad(const MachineFacts& machine) {
  const std::string line = KernelLine(machine, "/proc/loadavg");
  double load = 0;
  const auto end = std::from_chars(line.data(), line.data() + line.size(), load);
  if (end.ec != std::errc()) return Unknown("The system does not tell its load.");
  const std::string online = KernelLine(machine, fmt::format("{}/online", kCpus));
  const size_t cpus = std::max<size_t>(ParseCpuList(online).size(), 1);
  // A quarter of the CPUs: background work of a desktop stays below it.
  if (load > 0.5 && load > 0.25 * static_cast<double>(cpus)) {
    return Advice(
        "ps -eo pcpu,pid,args --sort=-pcpu | head",
        "Other programs compute, too: the load of the last minute is {:.1f} on {} logical "
        "CPUs, and threads of godwit wait for the slowest of them.",
        load, cpus);
  }
  return Good("The machine is idle: the load of the last minute is {:.1f} on {} logical CPUs.",
              load, cpus);
}

Finding ExamineNuma(const MachineFacts& machine) {
  const auto nodes = NumaNodes(machine.cpus, machine.root + "/sys/devices/system/node");
  if (nodes.size() < 2) return Good("All memory is equally near to all cores.");
  if (KernelLine(machine, "/proc/sys/kernel/numa_balancing") == "1") {
    return Advice("sudo sysctl kernel.numa_balancing=0",
                  "The system moves pages between {} memory nodes while godwit reads them; with "
                  "--numa distribute they lie well from the beginning.",
                  nodes.size());
  }
  return Advice(
      "export GODWIT_NUMA=distribute",
      "The machine has {} memory nodes, and --numa distribute spreads threads and weights "
      "over them.",
      nodes.size());
}

}  // namespace godwit::cli
