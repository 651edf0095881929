// The number of cores that this process may keep busy: the default number of threads.
//
// It counts physical cores within the affinity mask of the process, so that `taskset` and
// containers are respected. The two hardware threads of one core count once. Kernels that saturate
// a core's vector units or its share of the memory bandwidth gain nothing from the second.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/system/affinity.h"

namespace godwit {

int AvailableCores();

// As many as are asked for, or one for each of these cores where that is 0.
inline int ThreadsFor(int requested) { return requested == 0 ? AvailableCores() : requested; }

// The testable half: of the logical `cpus`, how many distinct cores, given the kernel's topology
// folder (/sys/devices/system/cpu). A CPU whose topology cannot be read counts as a core.
int CountCores(std::span<const int> cpus, const std::string& topology_root);

// The whole CPUs that the control groups of the process grant, its own and those above it; 0: no
// limit. root: as FindControlGroups has it.
int CpuQuota(const std::string& root);

}  // namespace godwit
