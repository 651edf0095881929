// Placement of threads and memory on a machine with several memory nodes.
//
// Every thread of the engine may take any piece of a weight. The pages of weights and caches are
// therefore dealt out to all nodes in turn (set_mempolicy, no library), and threads stay where they
// are. Each reads from all memory controllers together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/system/affinity.h"

namespace godwit {

enum class Numa {
  kNone,        // as the system likes
  kDistribute,  // threads pinned, node by node in turn; memory interleaved
};

// "none", "distribute". Throws Error(kInput).
Numa ParseNuma(std::string_view name);

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;  // that this process may use, ascending
};

// The nodes with any such CPU; one node with all of them where the system does not say.
std::vector<NumaNode> NumaNodes();

// The testable half: `cpus` as /sys/devices/system/node lists them under `root`.
std::vector<NumaNode> NumaNodes(const std::vector<int>& cpus, const std::string& root);

// "0-3,8,10-11"; what is not understood ends the list.
std::vector<int> ParseCpuList(std::string_view list);

// A CPU for each thread: the first of every node, then the second of every node, and so on.
std::vector<int> AssignCpus(const std::vector<NumaNode>& nodes, int threads);

// Settles what threads that the calling thread starts from now on inherit, and returns the CPUs to
// pin them to, for ThreadPool: none for kNone. `report` gets a line for people.
std::vector<int> PlaceThreads(Numa numa, int threads, std::string* report);

}  // namespace godwit
