#include "lab/kv_memory.h"

#include <utility>

#include "base/machine_memory.h"

namespace godwit::lab {

std::shared_ptr<KvPool> PoolOf(const cli::KvMemory& memory, const KvLayout& layout) {
  if (memory.bytes == 0 && memory.file.empty()) return nullptr;
  auto budget = std::make_shared<KvBudget>(memory.bytes > 0 ? memory.bytes
                                                            : ReadMachineMemory().available_bytes);
  if (memory.file.empty()) return std::make_shared<KvPool>(layout, std::move(budget));
  return std::make_shared<KvPool>(
      layout, std::make_shared<KvFile>(memory.file, memory.file_bytes, std::move(budget)));
}

}  // namespace godwit::lab
