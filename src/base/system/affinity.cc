#include "base/system/affinity.h"

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstddef>

namespace godwit {

#ifdef __linux__

std::vector<int> AllowedCpus() {
  // One cpu_set_t holds 1024 CPUs. The call fails with EINVAL on machines that have more.
  std::vector<cpu_set_t> sets(16);
  const size_t bytes = sets.size() * sizeof(cpu_set_t);
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, sets.data()) != 0) return cpus;
  for (int cpu = 0; cpu < static_cast<int>(bytes * 8); ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, sets.data())) cpus.push_back(cpu);
  }
  return cpus;
}

bool PinThisThread(int cpu) noexcept {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return sched_setaffinity(0, sizeof(set), &set) == 0;
}

bool InterleaveMemory(const std::vector<int>& nodes) noexcept {
  constexpr int kInterleave = 3;  // MPOL_INTERLEAVE of <numaif.h>, which belongs to libnuma
  constexpr size_t kBits = 8 * sizeof(unsigned long);
  unsigned long mask[kMaxNodes / kBits] = {};
  for (const int node : nodes) {
    const auto bit = static_cast<size_t>(node);
    if (node < kMaxNodes) mask[bit / kBits] |= 1UL << (bit % kBits);
  }
  return syscall(SYS_set_mempolicy, kInterleave, mask, static_cast<unsigned long>(kMaxNodes)) == 0;
}

#else

std::vector<int> AllowedCpus() { return {}; }
bool PinThisThread(int /*cpu*/) noexcept { return false; }
bool InterleaveMemory(const std::vector<int>& /*nodes*/) noexcept { return false; }

#endif

}  // namespace godwit
