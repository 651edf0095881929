#include "base/numa.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>

#include "base/cores.h"
#include "base/error.h"
#include "base/quote.h"

namespace godwit {

Numa ParseNuma(std::string_view name) {
  if (name.empty() || name == "none") return Numa::kNone;
  if (name == "distribute") return Numa::kDistribute;
  Throw(ErrorKind::kInput, "expected none or distribute, found {}", Quote(name));
}

std::vector<int> ParseCpuList(std::string_view list) {
  std::vector<int> cpus;
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    int first = 0;
    auto parsed = std::from_chars(at, end, first);
    if (parsed.ec != std::errc() || first < 0) return cpus;
    int last = first;
    if (parsed.ptr < end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
      constexpr int kMaxCpus = 1 << 16;
      if (parsed.ec != std::errc() || last < first || last > kMaxCpus) return cpus;
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = parsed.ptr;
    if (at < end && *at++ != ',') return cpus;
  }
  return cpus;
}

std::vector<NumaNode> NumaNodes(const std::vector<int>& cpus, const std::string& root) {
  std::vector<NumaNode> nodes;
  std::string online;
  std::ifstream list(root + "/online");
  std::getline(list, online);
  for (const int id : ParseCpuList(online)) {
    if (id >= kMaxNodes) break;
    std::ifstream file(fmt::format("{}/node{}/cpulist", root, id));
    std::string line;
    std::getline(file, line);
    NumaNode node{.id = id, .cpus = {}};
    for (const int cpu : ParseCpuList(line)) {
      if (std::find(cpus.begin(), cpus.end(), cpu) != cpus.end()) node.cpus.push_back(cpu);
    }
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  if (nodes.empty()) nodes.push_back({.id = 0, .cpus = cpus});
  return nodes;
}

std::vector<NumaNode> NumaNodes() { return NumaNodes(AllowedCpus(), "/sys/devices/system/node"); }

std::vector<int> AssignCpus(const std::vector<NumaNode>& nodes, int threads) {
  std::vector<int> order;
  size_t longest = 0;
  for (const NumaNode& node : nodes) longest = std::max(longest, node.cpus.size());
  for (size_t i = 0; i < longest; ++i) {
    for (const NumaNode& node : nodes) {
      if (i < node.cpus.size()) order.push_back(node.cpus[i]);
    }
  }
  std::vector<int> cpus;
  for (size_t i = 0; !order.empty() && i < static_cast<size_t>(threads); ++i) {
    cpus.push_back(order[i % order.size()]);
  }
  return cpus;
}

std::vector<int> PlaceThreads(Numa numa, int threads, std::string* report) {
  if (numa == Numa::kNone) return {};
  const std::vector<NumaNode> nodes = NumaNodes();
  std::string memory = "this machine has one NUMA node, so memory is not spread";
  if (nodes.size() > 1) {
    std::vector<int> ids;
    for (const NumaNode& node : nodes) ids.push_back(node.id);
    memory = InterleaveMemory(ids)
                 ? fmt::format("memory is spread over {} NUMA nodes", nodes.size())
                 : std::string("the system refuses to spread memory over its NUMA nodes");
  }
  std::vector<int> cpus = AssignCpus(nodes, threads);
  *report = fmt::format("threads are pinned to CPUs {}; {}", fmt::join(cpus, ", "), memory);
  return cpus;
}

}  // namespace godwit
