#include "engine/memory_plan.h"

#include <algorithm>

#include "attention/kv_store.h"
#include "base/checked.h"
#include "base/machine_memory.h"

namespace godwit {

int64_t LargestContext(const AttentionGeometry& geometry, DType kv_type, int64_t free_bytes) {
  return std::max<int64_t>(0, free_bytes) / KvBytesPerToken(geometry, kv_type);
}

void CheckKvFits(const AttentionGeometry& geometry, DType kv_type, int64_t tokens) {
  const int64_t fits = LargestContext(geometry, kv_type, ReadMachineMemory().available_bytes);
  RequireMemory(CheckedMul(tokens, KvBytesPerToken(geometry, kv_type)).value_or(INT64_MAX),
                "the KV cache of {} more tokens in {}, of which {} would fit, takes", tokens,
                Name(kv_type), fits);
}

}  // namespace godwit
