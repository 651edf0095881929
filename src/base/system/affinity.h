// The CPUs that threads run on, and the memory nodes that their memory comes from.
#pragma once

#include <vector>

namespace godwit {

// The logical CPUs of the affinity mask, ascending; none if the system does not say.
std::vector<int> AllowedCpus();

// False where the system refuses, or cannot pin threads.
bool PinThisThread(int cpu) noexcept;

// Deals memory of the calling thread, and of threads that it starts, out to these nodes in turn.
// Nodes of kMaxNodes and more are left out. False where the system refuses, or has no such call.
inline constexpr int kMaxNodes = 1024;
bool InterleaveMemory(const std::vector<int>& nodes) noexcept;

}  // namespace godwit
